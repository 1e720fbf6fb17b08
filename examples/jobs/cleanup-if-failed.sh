#!/bin/sh
#EPHOR -J cleanup -t 1 -o cleanup.out
echo "the job before failed; cleaning up"

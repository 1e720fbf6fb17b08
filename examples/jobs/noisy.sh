#!/bin/sh
#EPHOR -J noisy -t 1 -o noisy.out -e noisy.err
echo "this goes to the output"
echo "this goes to the error file" >&2

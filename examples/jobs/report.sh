#!/bin/sh
#EPHOR -J report -t 1 -o report.out
echo "the model says: $(cat model.txt)"

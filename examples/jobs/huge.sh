#!/bin/sh
#EPHOR -J huge -t 1 -N 3 -c 2 --exclusive -o huge.out
echo "three whole nodes: $EPHOR_JOB_NODES"

#!/bin/sh
#EPHOR -J too-long
#EPHOR -t 0:02
#EPHOR -o too-long.out
trap 'echo "told to stop, saving"; exit 0' TERM
echo started
while :; do sleep 0.1; done

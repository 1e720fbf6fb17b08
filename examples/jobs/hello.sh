#!/bin/sh
#EPHOR --job-name hello
#EPHOR --time 1
#EPHOR --output hello.out
echo "hello from $EPHOR_JOB_ID on $(hostname), $(nproc) cores seen"

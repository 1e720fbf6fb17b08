#!/bin/sh
#EPHOR -J train -t 2 -c 2 --mem 64M -o train.out
echo "training on $(cat words.txt)"
sleep 1
tr a-z A-Z < words.txt > model.txt

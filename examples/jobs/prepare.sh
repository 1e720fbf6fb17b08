#!/bin/sh
#EPHOR -J prepare -t 1 -o prepare.out
echo "one two three" > words.txt
echo "wrote $(wc -w < words.txt) words"

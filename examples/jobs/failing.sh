#!/bin/bash
#SBATCH --job-name=failing --time=1 --output=failing.out
echo "about to fail"
exit 3

#!/bin/bash
#SBATCH -J squares
#SBATCH --array=1-6%3
#SBATCH -t 1
#SBATCH -o squares-%a.out
echo "$SLURM_ARRAY_TASK_ID squared is $((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))"

import { spawnSync } from 'node:child_process'

/** What `speech.wav` of `install-voices.sh` says. */
export const spokenText =
  'The weather is nice today, and the children are playing in the garden. Water boils at a high temperature.'

export const wordsOf = (text: string): string[] => text.toLowerCase().match(/[a-z]+/g) ?? []

/** The folders that a Python program reads: its environment and the installation below it. */
export function pythonPrefixes(python: string): string[] {
  const { stdout } = spawnSync(python, ['-c', 'import sys; print(sys.prefix, sys.base_prefix, sep="\\n")'])
  return [...new Set(stdout.toString().trim().split('\n'))]
}

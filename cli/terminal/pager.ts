import { spawnSync } from 'node:child_process'
import { stripAnsi } from 'consola/utils'
import { lineWidth } from './styled-line.ts'
import type { Terminal } from './terminal.ts'

/** Fails like a missing program where there is no less. */
const usualPager = 'command -v less > /dev/null || exit 127; less'

/**
 * Prints a text page by page if it is longer than the screen. In a pipe, or with an empty or missing pager, prints it at
 * once. The pager is INFER_PAGER, else PAGER, else less.
 */
export function printPaged(text: string, terminal: Terminal): void {
  const command = pagerOf(terminal.environment)
  if (terminal.interactive && command !== '' && isLonger(text, terminal.stdout) && runPager(command, text, terminal))
    return
  terminal.print(text)
}

/** Returns the shell command of the pager; empty for none. */
const pagerOf = ({ INFER_PAGER, PAGER }: Terminal['environment']): string => {
  const command = (INFER_PAGER ?? PAGER ?? usualPager).trim()
  return command === 'cat' ? '' : command
}

/** Whether the text has more lines than a screen, where the next prompt needs one. A long line takes several. */
export function isLonger(text: string, { rows = 24, columns = 80 }: { rows?: number; columns?: number }): boolean {
  const lines = stripAnsi(text).split('\n')
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(lineWidth(line) / columns)), 0) >= rows
}

/** Runs the pager until its user leaves it. Returns false if there is no such program. */
function runPager(command: string, text: string, { environment }: Terminal): boolean {
  // Ctrl-C is for the pager, which stays.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  try {
    const { status, error } = spawnSync('/bin/sh', ['-c', command], {
      // F: ends at once if the text fits, R: colors, X: the text stays on the screen.
      env: { LESS: 'FRX', ...environment },
      input: `${text}\n`,
      // Some pagers read the keys from standard error.
      stdio: ['pipe', 'inherit', 'inherit'],
    })
    // A pager that was left early has not read everything.
    return (error === undefined || ('code' in error && error.code === 'EPIPE')) && status !== 127 && status !== 126
  } finally {
    process.off('SIGINT', ignore)
  }
}

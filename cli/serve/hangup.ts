import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'

/**
 * Whether this process belongs to a terminal, so that SIGHUP means that the terminal was closed. Call it at the start:
 * the kernel detaches the terminal before the signal arrives.
 */
export const startedInTerminal = (): boolean =>
  belongsToTerminal({ stat: ownStat(), usesTerminal: [0, 1, 2].some(fd => isatty(fd)) })

/**
 * A process belongs to its controlling terminal if one of its standard streams is a terminal. Otherwise nohup or a
 * redirection of all three streams started it so that it outlives the terminal. (Node resets the ignored SIGHUP of
 * nohup.) `stat` is the text of /proc/self/stat.
 */
export function belongsToTerminal({
  stat,
  usesTerminal,
}: {
  stat: string | undefined
  usesTerminal: boolean
}): boolean {
  // The name in brackets may contain anything. After it: state, parent, group, session, controlling terminal (0: none).
  const terminal = stat
    ?.slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .at(4)
  return usesTerminal && terminal !== undefined && terminal !== '0'
}

function ownStat(): string | undefined {
  try {
    return readFileSync('/proc/self/stat', 'utf8')
  } catch {
    return undefined
  }
}

import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { first, type Wrapper } from '../sandbox/wrapper.ts'
import { childrenOf } from './processes.ts'

/** Start of the command line of a namespace's first process, once it runs the shell that starts the engine. */
const firstCommand = first.slice(0, 3).join('\0')

/**
 * Finds the engine's process below the wrapper, for display. It appears some milliseconds after the wrapper; until
 * then the children are tools that build the sandbox.
 */
export async function locateProgram(
  pid: number,
  { name, depth }: Pick<Wrapper, 'name' | 'depth'>,
  found: (pid: number) => void,
): Promise<void> {
  if (depth === 0) return
  for (let attempt = 0; attempt < 100; attempt++) {
    let above: number | undefined = pid
    for (let level = 1; level < depth && above !== undefined; level++) above = (await childrenOf(above))[0]
    // Check the parent first: until it runs the shell, its child is a tool.
    const [child] =
      above !== undefined && (name !== 'unshare' || (await startsEngine(above))) ? await childrenOf(above) : []
    if (child !== undefined) return found(child)
    await pause(20)
  }
}

const startsEngine = async (pid: number): Promise<boolean> =>
  (await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).startsWith(firstCommand)

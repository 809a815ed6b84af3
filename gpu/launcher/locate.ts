import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { childrenOf } from './processes.ts'
import { first, type Wrapper } from './wrapper.ts'

/** The first process of a namespace once it has become what starts the engine. */
const firstCommand = first.slice(0, 3).join('\0')

/**
 * Finds the engine's own process below the wrapper, for showing; it appears some milliseconds after the wrapper. Before
 * that, tools that build its sandbox run in its place.
 */
export async function locate(
  pid: number,
  { name, depth }: Pick<Wrapper, 'name' | 'depth'>,
  found: (pid: number) => void,
): Promise<void> {
  if (depth === 0) return
  for (let attempt = 0; attempt < 100; attempt++) {
    let above: number | undefined = pid
    for (let level = 1; level < depth && above !== undefined; level++) above = (await childrenOf(above))[0]
    // Looked at before its child is: the child is a tool until then.
    const [at] =
      above !== undefined && (name !== 'unshare' || (await startsEngine(above))) ? await childrenOf(above) : []
    if (at !== undefined) return found(at)
    await pause(20)
  }
}

const startsEngine = async (pid: number): Promise<boolean> =>
  (await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')).startsWith(firstCommand)

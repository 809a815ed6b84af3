import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; execution: 'async' }) => Promise<void>
let collect: Collect | undefined

/**
 * Has V8 collect all garbage soon. Buffers of many megabytes are garbage of a few bytes to V8: an idle process keeps them
 * for minutes. It stops the thread for some tens of milliseconds, so it is for moments at which little is done.
 */
export function collectGarbage(): void {
  if (!collect) {
    // The function exists only in contexts that are made while the flag is set.
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as Collect
    setFlagsFromString('--no-expose-gc')
  }
  void collect({ type: 'major', execution: 'async' })
}

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collect = (options: { type: 'major'; execution: 'async' }) => Promise<void>
let collect: Collect | undefined

/**
 * Makes V8 collect all garbage soon. V8 counts a buffer of many megabytes as a few bytes, so an idle process would keep it
 * for minutes. A collection stops the thread for some tens of milliseconds: call this only when little work is running.
 */
export function collectGarbage(): void {
  if (!collect) {
    // `gc` exists only in contexts that are created while the flag is set.
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as Collect
    setFlagsFromString('--no-expose-gc')
  }
  void collect({ type: 'major', execution: 'async' })
}

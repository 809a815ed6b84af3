import { readdirSync, readFileSync } from 'node:fs'

/** The process ids of the gateway processes that this process has started. */
export function frontPids(): number[] {
  return readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const isFront = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').includes('__front')
      return isFront && state !== 'Z' && Number(parent) === process.pid ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

import { type Device, noReadings } from '../../devices/device.ts'

/** The arguments of sinfo that list the nodes of a partition, or of all. */
export const nodeArguments = (partition: string | undefined): string[] => [
  '--noheader',
  '--Node',
  ...(partition === undefined ? [] : [`--partition=${partition}`]),
  '--format=%N|%T|%G',
]

const usable = /^(idle|mixed|allocated|completing|reserved|planned)/

/**
 * Reads the cards from what sinfo prints for `nodeArguments`: each card of each node that takes jobs. `gres`: the generic
 * resource of a card, perhaps with its type. Slurm knows neither the memory of a card nor its use.
 */
export function cardsIn(
  text: string,
  gres: string,
  cardMemoryBytes: number,
): { devices: Device[]; unusable: string[] } {
  const devices = new Map<string, Device>()
  const unusable = new Set<string>()
  for (const line of text.split('\n')) {
    const [node, state = '', resources = ''] = line.split('|')
    const count = node ? cardsOf(resources, gres) : 0
    if (count === 0) continue
    // A suffix tells more of a node: `*` does not answer, `~` is powered down, `#` starts.
    if (!usable.test(state) || state.endsWith('*')) {
      unusable.add(`${node} (${state})`)
      continue
    }
    for (let index = 0; index < count; index++) {
      const id = `${node}/gpu${index}`
      devices.set(id, {
        ...noReadings,
        id,
        kind: 'gpu',
        name: gres,
        totalBytes: cardMemoryBytes,
        usedBytes: null,
        cudaId: null,
        uuid: null,
        cores: null,
      })
    }
  }
  return { devices: [...devices.values()], unusable: [...unusable] }
}

/** `gpu:a100:4(S:0-1),shard:8` has four cards for `gpu` and for `gpu:a100`. */
function cardsOf(resources: string, gres: string): number {
  let count = 0
  for (const one of resources.replaceAll(/\([^)]*\)/g, '').split(',')) {
    const words = one.split(':')
    const number = Number(words.at(-1))
    const kind = words.slice(0, -1).join(':')
    if (number > 0 && (kind === gres || kind.startsWith(`${gres}:`))) count += number
  }
  return count
}

import { z } from 'zod'
import type { Lease } from '../../fleet.ts'
import type { Leaving } from '../../leaving.ts'
import { ask } from '../ask.ts'

export interface Voice {
  id: string
  name: string
}

const name = z.string().min(1).max(256)
const One = z.union([
  name.transform(id => ({ id, name: id })),
  z
    .object({ id: name.optional(), voice_id: name.optional(), name: name.optional() })
    .transform(({ id, voice_id, name: said }) => ({
      id: id ?? voice_id ?? said ?? '',
      name: said ?? id ?? voice_id ?? '',
    })),
])
const List = z.array(One).max(2000)
/** Kokoro-FastAPI says `voices`, speaches `data`, some a bare list. */
const Answer = z.union([List, z.object({ voices: List }), z.object({ data: List })])

/** The voices that an engine names; none where what it says is not understood. */
export function voicesIn(answer: string): Voice[] {
  try {
    const read = Answer.safeParse(JSON.parse(answer))
    if (!read.success) return []
    const list = Array.isArray(read.data) ? read.data : 'voices' in read.data ? read.data.voices : read.data.data
    return list.filter(({ id }) => id !== '')
  } catch {
    return []
  }
}

/** Asks an engine that runs. `path` is where it speaks; beside that it tells its voices. Rejects as `ask` does. */
export async function askForVoices(lease: Lease, path: string, signal: Leaving): Promise<Voice[]> {
  const list = path.replace(/\/speech$/, '/voices')
  return voicesIn((await ask(lease, list, '', 1 << 20, signal, { method: 'GET' })).toString('utf8'))
}

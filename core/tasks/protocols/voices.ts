import { z } from 'zod'
import type { CallerSignal } from '../../abort-source.ts'
import type { Lease } from '../../models/fleet.ts'
import { ask } from './ask.ts'

export interface Voice {
  id: string
  name: string
  /** As the engine reports them; null if it does not. */
  language: string | null
  gender: string | null
  /** An http(s) URL of a sample. */
  preview_url: string | null
}

/** Returns a voice of which only the name is known. */
export const plainVoice = (id: string): Voice => ({ id, name: id, language: null, gender: null, preview_url: null })

const name = z.string().min(1).max(256)
const shortText = z.string().min(1).max(64).nullable().default(null).catch(null)
const address = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .nullable()
  .default(null)
  .catch(null)
const One = z.union([
  name.transform(plainVoice),
  z
    .object({
      id: name.optional(),
      voice_id: name.optional(),
      name: name.optional(),
      language: shortText,
      gender: shortText,
      preview_url: address,
    })
    .transform(({ id, voice_id, name: called, ...facts }) => ({
      id: id ?? voice_id ?? called ?? '',
      name: called ?? id ?? voice_id ?? '',
      ...facts,
    })),
])
const List = z.array(One).max(2000)
/** Kokoro-FastAPI sends `voices`, speaches sends `data`, others send a bare list. */
const Answer = z.union([List, z.object({ voices: List }), z.object({ data: List })])

/** Parses the voices in an engine's answer; none if the answer is invalid. */
export function parseVoices(answer: string): Voice[] {
  try {
    const read = Answer.safeParse(JSON.parse(answer))
    if (!read.success) return []
    const list = Array.isArray(read.data) ? read.data : 'voices' in read.data ? read.data.voices : read.data.data
    return list.filter(({ id }) => id !== '')
  } catch {
    return []
  }
}

/** Requests the voices of a running engine, beside its synthesis route `path`. Rejects as `ask` does. */
export async function askForVoices(lease: Lease, path: string, signal: CallerSignal): Promise<Voice[]> {
  const list = path.replace(/\/speech$/, '/voices')
  return parseVoices((await ask(lease, list, '', 1 << 20, signal, { method: 'GET' })).toString('utf8'))
}

import type { Api } from '../client/client.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'

type Engine = Pick<Api['EngineStatus'], 'model_id' | 'booked_memory_bytes' | 'used_memory_bytes'>

/** The share from which on a difference is said, and the bytes that drivers count differently. */
const least = { share: 0.05, bytes: 64 * 2 ** 20 }

/** Returns a sentence for each engine that uses more or less memory than was reserved for it when it was started. */
export const memoryNotes = (engines: readonly Engine[]): string[] =>
  engines.flatMap(({ model_id, booked_memory_bytes: booked, used_memory_bytes: used }) => {
    if (used == null || !(booked > 0) || Math.abs(used - booked) <= Math.max(least.bytes, booked * least.share))
      return []
    const percent = Math.round((Math.abs(used - booked) / booked) * 100)
    const than = `${percent} % ${used > booked ? 'more' : 'less'} than was reserved (${sizeText(booked)})`
    return printable(`${model_id}: It uses ${sizeText(used)}, ${than}.`)
  })

import { remoteServer } from '../../core/config.ts'
import { openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { fetchStatus } from '../status/live.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import { type Finding, fine } from './finding.ts'

/** An engine that the running server has taken over from the server before. */
export interface KeptEngine {
  modelId: string
  /** Seconds since then. */
  seconds: number
}

/** Milliseconds for the answer of the server. */
const timeoutMs = 3_000

/** Asks the running server of the data directory; resolves with none if there is none, or it does not answer. */
export async function keptEngines(dataDir: string): Promise<KeptEngine[]> {
  if (remoteServer() !== undefined || !runningServer(dataDir)) return []
  const status = await fetchStatus(openClient(dataDir), AbortSignal.timeout(timeoutMs)).catch(() => undefined)
  return (status?.engines ?? []).flatMap(({ model_id, taken_over_at }) =>
    taken_over_at ? { modelId: model_id, seconds: status!.time - taken_over_at } : [],
  )
}

/** Names the engines that were kept over a restart of the server; undefined if none was. */
export function checkKeptEngines(engines: readonly KeptEngine[]): Finding | undefined {
  if (engines.length === 0) return undefined
  const each = engines.map(({ modelId, seconds }) => `${printable(modelId)} ${lengthText(seconds)} ago`)
  return fine('kept engines', `kept over a restart of the server: ${each.join(', ')}`)
}

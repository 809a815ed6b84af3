import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { remoteServer } from '../../core/config.ts'
import { openClient } from '../client/client.ts'
import { runningServer } from '../client/server-file.ts'

/** Maximum time for the server to read infer.yaml again. Milliseconds. */
const reloadWithinMs = 5_000

/** Whether the server offers the model now; undefined when no local server runs. Waits for it to read infer.yaml. */
export async function isOffered(id: string, dataDir: string, signal: AbortSignal): Promise<boolean | undefined> {
  if (remoteServer() || !runningServer(dataDir)) return undefined
  const answer = z.looseObject({ models: z.array(z.looseObject({ model_id: z.string() })) })
  const deadline = performance.now() + reloadWithinMs
  for (;;) {
    const { models } = await openClient(dataDir).ask({ method: 'GET', path: '/api/model-status', answer, signal })
    if (models.some(({ model_id }) => model_id === id)) return true
    if (performance.now() > deadline) return false
    await pause(100, undefined, { signal })
  }
}

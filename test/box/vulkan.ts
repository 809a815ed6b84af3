import { mkdirSync } from 'node:fs'
import { assetPath } from '../../core/assets.ts'
import { until } from '../e2e/_home.ts'
import { cacheWithShaders, driver, environment, missing } from '../gpu/_vulkan.ts'
import { openServer } from './server.ts'

/** What was seen on a Vulkan device. */
export interface VulkanTrial {
  /** One line for the page of figures; without a device, why there is none. */
  result: string
  /** What should not have been. */
  wrong: string[]
}

interface Status {
  devices: { id: string; name: string; booked_bytes: number }[]
  engines: { devices: string[]; placement: { on: string; detail: string } }[]
}

const model = 'tiny/vulkan'
const answerMs = 60_000

/**
 * A server of its own on Mesa's software device: the built-in engine loads a model there, answers, and is unloaded. It has
 * no fake card, because these are of another maker.
 */
export async function tryVulkan(
  folder: string,
  { packed, say }: { packed: boolean; say: (line: string) => void },
): Promise<VulkanTrial> {
  if (missing !== '') return { result: `skipped: ${missing}`, wrong: [] }
  say('a server with a Vulkan device begins')
  mkdirSync(folder)
  const { HOME: _, ...variables } = environment(driver, '0')
  const entry = { id: model, engine: 'gguf', source: assetPath('models/tiny-chat.gguf'), memory: '1GiB' }
  const server = await openServer(folder, [entry], {
    variables: { ...variables, INFER_CACHE_DIR: cacheWithShaders(folder) },
    packed,
  })
  const wrong: string[] = []
  try {
    const began = performance.now()
    await server.start()
    const body = { model, max_tokens: 8, messages: [{ role: 'user', content: 'Hello' }] }
    await server.ask('/std/v1/chat/completions', body)
    const ms = performance.now() - began
    if (ms > answerMs) wrong.push(`the first answer took ${(ms / 1_000).toFixed(1)} s`)
    const { devices, engines } = await server.ask<Status>('/api/system/status')
    const { placement } = engines[0] ?? {}
    const device = devices.find(({ id }) => id === 'gpu0')
    if (!device?.name.startsWith('llvmpipe')) wrong.push(`gpu0 is '${device?.name}'`)
    if (placement?.on !== 'gpu' || engines[0]!.devices.join() !== 'gpu0') wrong.push(`it ran ${placement?.detail}`)
    await server.ask(`/api/models/${encodeURIComponent(model)}/unload`, {})
    const isFree = async () => {
      const now = await server.ask<Status>('/api/system/status')
      return now.engines.length === 0 && now.devices[0]!.booked_bytes === 0
    }
    await until('the end of the engine', isFree, 10_000).catch(({ message }: Error) => wrong.push(message))
    await server.end('SIGTERM')
    for (const pid of server.processes()) wrong.push(`process ${pid} runs on`)
    return {
      result: `${device?.name}: ready and answered in ${(ms / 1_000).toFixed(1)} s, ${placement?.detail}`,
      wrong,
    }
  } catch (cause) {
    return { result: 'failed', wrong: [...wrong, (cause as Error).message, server.log().slice(-2_000)] }
  } finally {
    await server.close()
  }
}

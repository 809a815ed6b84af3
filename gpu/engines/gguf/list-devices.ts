import { setImmediate as nextTurn } from 'node:timers/promises'
import type { LlamaLogLevel } from 'node-llama-cpp'
import { assetPath } from '../../../core/assets.ts'
import { type ListedDevice, parseListing } from '../../devices/vulkan.ts'
import { startBackend } from './try-backend.ts'

/**
 * Lists the devices of the Vulkan backend. Calls `print` twice, because a driver may crash at the second step: with names
 * and memory, and with their PCI addresses besides. Throws Failure `worker_error` without a driver.
 */
export async function listDevices(backends: string | undefined, print: (devices: ListedDevice[]) => void) {
  let log = ''
  const { llama } = await startBackend('vulkan', backends, library => ({
    logLevel: library.LlamaLogLevel.debug,
    logger: (_level: LlamaLogLevel, message: string) => void (log += message.endsWith('\n') ? message : `${message}\n`),
  }))
  const names = await llama.getGpuDeviceNames()
  const { total } = await llama.getVramState()
  const listed = () => parseListing(log, names.length === 1 ? total : undefined)
  // The log comes through the event loop.
  for (let turn = 0; turn < 1_000 && listed().length < names.length; turn++) await nextTurn()
  print(listed())
  // Reads no tensors; it makes llama.cpp log the addresses.
  await llama.loadModel({ modelPath: assetPath('models/tiny-chat.gguf'), gpuLayers: 0, vocabOnly: true })
  print(listed())
  await llama.dispose()
}

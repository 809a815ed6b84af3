import { readFileSync } from 'node:fs'
import type { Llama } from 'node-llama-cpp'
import { cpuDevice } from '../../devices/cpu.ts'
import type { AvailableMemory } from './sizing.ts'

/** Usable share of the free memory: drivers and libraries allocate some more at run time. */
const usable = { gpu: 0.97, cpu: 0.9 }

/**
 * Returns the memory in bytes that this engine may use. `booked` is the memory reserved for it, on the GPUs if there
 * are any, else in main memory; without it, the memory that is free now.
 */
export async function availableMemory(llama: Llama, booked: number | undefined): Promise<AvailableMemory> {
  const cpu = Math.floor(Math.min(available(), cpuDevice().totalBytes) * usable.cpu)
  const cards = llama.gpu === false ? 0 : (await llama.getGpuDeviceNames()).length
  if (cards === 0) return { gpu: 0, cards, cpu: booked ?? cpu }
  const { free, total } = await llama.getVramState()
  return { gpu: booked ?? Math.floor(free * usable.gpu), cards, cpu, whole: total }
}

/** Main memory available without swapping, including the file cache, into which a model file is mapped. */
function available(): number {
  const kibibytes = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : Number(kibibytes) * 1024
}

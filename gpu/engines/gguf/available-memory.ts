import { readFileSync } from 'node:fs'
import type { Llama } from 'node-llama-cpp'
import { cpuDevice } from '../../devices/cpu.ts'
import type { AvailableMemory } from './sizing.ts'

/** What may be filled of what is free: drivers and libraries take a little more while they work. */
const usable = { gpu: 0.97, cpu: 0.9 }

/**
 * The memory that this engine may fill. `booked` is what it was given, on the cards where there are some and in main
 * memory otherwise; without it, what is free now.
 */
export async function availableMemory(llama: Llama, booked: number | undefined): Promise<AvailableMemory> {
  const cpu = Math.floor(Math.min(available(), cpuDevice().totalBytes) * usable.cpu)
  const cards = llama.gpu === false ? 0 : (await llama.getGpuDeviceNames()).length
  if (cards === 0) return { gpu: 0, cards, cpu: booked ?? cpu }
  const { free, total } = await llama.getVramState()
  return { gpu: booked ?? Math.floor(free * usable.gpu), cards, cpu, whole: total }
}

/** Main memory that can be had without swapping, file cache included; a model's file is mapped into it. */
function available(): number {
  const kibibytes = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : Number(kibibytes) * 1024
}

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { findProgram } from '../launcher/program.ts'

/**
 * Makes the device for unified memory where there is a driver and nobody has used CUDA since the machine started: CUDA
 * makes it at its first use by a program of the driver that needs root, which an engine in a sandbox cannot run.
 * Never throws; without the device CUDA says itself what is missing.
 */
export async function makeUvmDevice(path: string, dev = '/dev'): Promise<void> {
  if (!existsSync(join(dev, 'nvidiactl')) || existsSync(join(dev, 'nvidia-uvm'))) return
  const program = findProgram('nvidia-modprobe', path)
  if (program) await execa(program, ['-u', '-c', '0'], { stdin: 'ignore', timeout: 10_000, reject: false })
}

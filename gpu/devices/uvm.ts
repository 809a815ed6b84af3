import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { findProgram } from '../sandbox/program.ts'

/**
 * Creates the device file for unified memory when a driver is installed and CUDA was not used since the machine
 * started. CUDA creates it on first use with a program that needs root, which an engine in a sandbox cannot run. Never
 * throws; without the device CUDA reports what is missing.
 */
export async function makeUvmDevice(path: string, dev = '/dev'): Promise<void> {
  if (!existsSync(join(dev, 'nvidiactl')) || existsSync(join(dev, 'nvidia-uvm'))) return
  const program = findProgram('nvidia-modprobe', path)
  if (program) await execa(program, ['-u', '-c', '0'], { stdin: 'ignore', timeout: 10_000, reject: false })
}

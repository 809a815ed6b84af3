import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stringify } from 'yaml'
import nodeFlags from '../../bin/node-flags.json' with { type: 'json' }

/** The processes and the folder of one benchmark run; `close` ends and removes them. */
export function openBench() {
  const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
  const dataDir = join(folder, 'data')
  const children: ChildProcess[] = []

  /** Starts a program and resolves with the process id and the first group of the first line of output that matches. */
  function start(
    file: string,
    args: string[],
    wanted: RegExp,
    env: NodeJS.ProcessEnv = process.env,
  ): Promise<{ pid: number; match: string }> {
    const child = spawn(file, args, { stdio: 'pipe', env })
    children.push(child)
    return new Promise((resolve, reject) => {
      let output = ''
      const look = (line: string) => {
        output += `${line}\n`
        const match = wanted.exec(line)
        if (match) resolve({ pid: child.pid!, match: match[1]! })
      }
      createInterface({ input: child.stdout }).on('line', look)
      createInterface({ input: child.stderr }).on('line', look)
      child.once('exit', code => reject(new Error(`${file} ${args.join(' ')} exited (${code}): ${output}`)))
    })
  }

  return {
    dataDir,
    /** Runs a script of this folder until its first line that matches. */
    script: (name: string, args: (string | number)[], wanted: RegExp) =>
      start(process.execPath, [join(import.meta.dirname, name), ...args.map(String)], wanted),
    /** Starts `infer serve` with a configuration: build/infer when it is there, else dist/main.cjs. */
    async serve(config: object): Promise<{ pid: number; port: number; rootToken: string }> {
      const path = join(folder, 'infer.yaml')
      const gateway_processes = Number(process.env.INFER_BENCH_FRONTS) || 1
      writeFileSync(path, stringify({ gateway_processes, ...config }))
      const [file, before] = existsSync('build/infer')
        ? ['build/infer', []]
        : [process.execPath, [...nodeFlags, 'dist/main.cjs']]
      const env = { PATH: process.env.PATH, HOME: folder, INFER_DATA_DIR: dataDir }
      const args = [...before, 'serve', '--config', path, '--listen', '127.0.0.1:0']
      const { pid, match } = await start(file, args, /http:\/\/127\.0\.0\.1:(\d+)/, env)
      return { pid, port: Number(match), rootToken: readFileSync(join(dataDir, 'root-token'), 'utf8').trim() }
    },
    /** Resolves when a process of this run has ended. */
    exit: (pid: number): Promise<void> =>
      new Promise(resolve => children.find(child => child.pid === pid)!.once('exit', () => resolve())),
    close(): void {
      for (const child of children) child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Resident memory of a process, MiB. */
export const rssMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

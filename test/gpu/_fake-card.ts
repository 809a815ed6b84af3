import { execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'

const checks = resolve('test/gpu/checks')

/**
 * A fake GPU in a folder, with its own driver: `nvidia-smi` on the PATH, NVML and the checkpoint calls of CUDA as
 * libraries. Engines of the checks hold its memory by locked files.
 */
export function openFakeCard({ bytes = 150_000_000_000, freeDelayMs = 300 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-fake-card-'))
  for (const name of ['held', 'bin', 'lib']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'card'), `${bytes} ${freeDelayMs}`)
  const library = join(folder, 'lib', 'libnvidia-ml.so.1')
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, join(checks, 'fake', 'driver.c')])
  copyFileSync(library, join(folder, 'lib', 'libcuda.so.1'))
  const smi = join(folder, 'bin', 'nvidia-smi')
  const setting = `INFER_FAKE_CARD=${folder} LD_LIBRARY_PATH=${join(folder, 'lib')}`
  writeFileSync(smi, `#!/bin/sh\n${setting} exec python3 ${join(checks, 'fake', 'nvidia_smi.py')} "$@"\n`)
  chmodSync(smi, 0o755)
  const output = join(folder, 'gpu-checks.json')

  return {
    folder,
    output,
    /**
     * The faults of the driver, the GPU and the engines from now on: words of fake/driver.c, fake/nvidia_smi.py,
     * engines/.
     */
    misbehave(...faults: string[]): void {
      writeFileSync(join(folder, 'faults'), faults.join(' '))
    },
    /** Frees at once the memory that ended engines still hold on the GPU, which would be freed later. */
    clear(): void {
      for (const name of readdirSync(join(folder, 'held'))) rmSync(join(folder, 'held', name), { force: true })
    },
    /** A PATH that contains only these programs and nvidia-smi. */
    pathOf(...programs: string[]): string {
      const at = mkdtempSync(join(folder, 'path-'))
      for (const name of programs) symlinkSync(fileOf(name), join(at, name))
      return `${join(folder, 'bin')}:${at}`
    },
    /** Runs the checks to their end: exit status and lines. */
    run: (args: readonly string[], environment: Record<string, string> = {}) =>
      runChecks(['--device', 'fake', '--quick', '--output', output, ...args], {
        PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
        LD_LIBRARY_PATH: join(folder, 'lib'),
        INFER_FAKE_CARD: folder,
        ...environment,
      }),
    close: (): void => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Runs `run.py` with only this environment. */
export async function runChecks(args: readonly string[], environment: Record<string, string>, program?: string[]) {
  const [file = 'python3', ...before] = program ?? ['python3', join(checks, 'run.py')]
  const child = spawn(file, [...before, ...args], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((settle, reject) => child.once('error', reject).once('close', settle))
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code, err, lines: out.trim().split('\n') }
}

/** The file of a program; for Python the interpreter itself, since `python3` may be a script that chooses one. */
const fileOf = (name: string): string =>
  execFileSync(
    'sh',
    ['-c', name === 'python3' ? 'python3 -c "import sys; print(sys.executable)"' : `command -v ${name}`],
    {
      encoding: 'utf8',
    },
  ).trim()

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { startApp } from '../_app.ts'

/**
 * Compares the Python worker behind infer with the same pipeline of diffusers in a loop. Measures an image from the request
 * to the finished job, with its file stored, as a share of the call of the pipeline and the saved PNG. Both have the same
 * threads and weights; runs alternate and the median of their ratios counts.
 * Usage: INFER_REAL_PYTHON=… diffusion.ts [--device cuda] [--model FOLDER] [--side 256] [--steps 20] [--rounds 7]
 * Without a model it makes a tiny Stable Diffusion with random weights. On a card use one of real size, such as that of
 * test/real/make-sd15-random.py with --side 512.
 */
const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    model: { type: 'string' },
    side: { type: 'string', default: '256' },
    steps: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '7' },
    threads: { type: 'string', default: '1' },
  },
})
const { device, threads } = values
const [side, steps, rounds] = [values.side, values.steps, values.rounds].map(Number) as [number, number, number]
const bar = 1.1
const python = process.env.INFER_REAL_PYTHON
if (!python) throw new Error('Set INFER_REAL_PYTHON to a Python with torch, diffusers and transformers.')
const here = (name: string) => join(import.meta.dirname, name)
const worker = here('../../gpu/worker')
const folder = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!

function output(args: string[]): string {
  const { status, stdout, stderr } = spawnSync(python!, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout
}
if (!values.model) output([here('../real/make-diffusion-models.py'), folder])
const model = values.model ?? join(folder, 'sd')
const prefixes = output(['-c', 'import sys; print(sys.prefix, sys.base_prefix, sep="\\n")']).trim().split('\n')

const bare = spawn(python, [here('bare-diffusion.py'), model, device, threads, join(folder, 'bare.png')], {
  stdio: ['pipe', 'pipe', 'inherit'],
})
const lines = createInterface({ input: bare.stdout })[Symbol.asyncIterator]()
const nextLine = async (): Promise<string> => {
  const { value, done } = await lines.next()
  if (done) throw new Error('The pipeline without infer ended.')
  return value
}
const app = await startApp({
  models: [
    {
      id: 'sd',
      engine: 'custom',
      command: [
        python,
        '-m',
        'infer_worker',
        '--model',
        model,
        '--id',
        'sd',
        '--task',
        'slug/text-to-image',
        '--threads',
        threads,
        '--device',
        device,
        '--offload',
        'none',
        '--socket',
        '{socket}',
      ],
      env: { PYTHONPATH: worker, PYTHONDONTWRITEBYTECODE: '1' },
      sandbox_read: [folder, model, worker, ...prefixes],
      ...(device === 'cpu' ? { devices: 'cpu' } : {}),
      memory: device === 'cpu' ? '2GiB' : '16GiB',
      concurrency: 1,
      tasks: ['slug/text-to-image'],
      load_timeout: '300s',
    },
  ],
})

try {
  let seed = 0
  const size = { width: side, height: side, num_inference_steps: steps }
  async function withInfer(): Promise<number> {
    const began = performance.now()
    const inputs = { prompt: 'a cat', guidance_scale: 5, ...size, seed: ++seed }
    const submitted = await app.fetch('/api/jobs', { body: { task: 'slug/text-to-image', model_id: 'sd', inputs } })
    const { id } = (await submitted.json()) as { id: string }
    for (;;) {
      const job = (await (await app.fetch(`/api/jobs/${id}?wait=60`)).json()) as { status: string; error: unknown }
      if (job.status === 'completed') return (performance.now() - began) / 1000
      if (job.status === 'failed') throw new Error(JSON.stringify(job.error))
    }
  }
  async function without(): Promise<number> {
    bare.stdin.write(`${JSON.stringify({ prompt: 'a cat', guidance_scale: 5, ...size, seed })}\n`)
    return Number(await nextLine())
  }
  await nextLine()
  // The first of each loads and warms up.
  await withInfer()
  await without()
  const pairs: { infer: number; bare: number }[] = []
  for (let round = 0; round < rounds; round++) pairs.push({ infer: await withInfer(), bare: await without() })
  const ratio = median(pairs.map(pair => pair.infer / pair.bare))
  const of = (which: 'infer' | 'bare') => median(pairs.map(pair => pair[which])).toFixed(2)
  console.log(
    `${ratio <= bar ? 'good' : 'ABOVE'}: ${side}×${side}, ${steps} steps on ${device}: ${of('infer')} s through infer, ` +
      `${of('bare')} s bare, ratio ${ratio.toFixed(3)}, bar ${bar}`,
  )
  process.exitCode = ratio <= bar ? 0 : 1
} finally {
  bare.kill('SIGKILL')
  await once(bare, 'exit')
  await app[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
}

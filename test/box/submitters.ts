import { setTimeout as delay } from 'node:timers/promises'
import type { Actor } from './box.ts'

const batchLines = 60

/** One batch, submitted at the beginning: its lines run when nobody else needs the cards. */
export const nightlyBatch: Actor = {
  name: 'batch',
  organization: 'research',
  async run(client, box) {
    const lines = Array.from({ length: batchLines }, (_, at) => ({
      custom_id: `line-${at}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'night/small', messages: [{ role: 'user', content: `Document ${at} mode:slow,ms=200` }] },
    }))
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new Blob([lines.map(line => JSON.stringify(line)).join('\n')]), 'documents.jsonl')
    const file = await client.submit('/std/v1/files', form, 'batch-file')
    const terms = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const id = String((await client.submit('/std/v1/batches', terms, 'batch')).id)
    const check = async () => {
      const batch = await client.get(`/std/v1/batches/${id}`)
      if (!batch || ['validating', 'in_progress', 'finalizing'].includes(String(batch.status))) return undefined
      if (batch.status !== 'completed') return `its status is ${String(batch.status)}`
      const output = (await client.getText(`/std/v1/files/${String(batch.output_file_id)}/content`)).trim().split('\n')
      const served = output
        .map(line => JSON.parse(line) as { custom_id: string; response?: { status_code: number } })
        .filter(({ response }) => response?.status_code === 200)
      const distinct = new Set(served.map(line => line.custom_id)).size
      if (distinct === batchLines && output.length === batchLines) return null
      return `${distinct} of ${batchLines} lines were answered, in ${output.length} lines of output`
    }
    box.acknowledged.push({ kind: 'batch', id, at: box.now(), check })
  },
}

/** Submits an image every few seconds and does not wait for it. */
export const imageMaker: Actor = {
  name: 'image jobs',
  organization: 'engineering',
  async run(client, box) {
    for (let at = 1; !box.over.aborted; at++) {
      const inputs = { prompt: `Picture ${at} mode:slow,ms=300`, width: 256, height: 256 }
      const body = { task: 'slug/text-to-image', model_id: 'paint/image', inputs }
      const id = String((await client.submit('/api/jobs', body, `image-${at}`)).id)
      const check = async () => {
        const job = await client.get(`/api/jobs/${id}`)
        if (!job || job.status === 'pending' || job.status === 'processing') return undefined
        if (job.status !== 'completed') return `it is ${String(job.status)}: ${JSON.stringify(job.error)}`
        const [image] = (job.result as { images?: { url: string }[] }).images ?? []
        if (!image) return 'it has no image'
        const { pathname, search } = new URL(image.url)
        const bytes = await fetch(box.server.url + pathname + search).then(answer => answer.arrayBuffer())
        return Buffer.from(bytes).subarray(1, 4).toString() === 'PNG' ? null : 'its file is no image'
      }
      box.acknowledged.push({ kind: 'image job', id, at: box.now(), check })
      await delay(4_000)
    }
  },
}

/** A text that is written, then read by one model and illustrated by another. */
const dag = {
  nodes: {
    write: {
      model_id: 'write/story',
      task: 'std/chat-completion',
      inputs: { messages: [{ role: 'user', content: 'A short story. mode:slow,ms=200' }] },
    },
    index: {
      model_id: 'read/embed',
      task: 'std/embeddings',
      inputs: { input: '${nodes.write.result.choices[0].message.content}' },
    },
    draw: {
      model_id: 'paint/image',
      task: 'slug/text-to-image',
      inputs: { prompt: '${nodes.write.result.choices[0].message.content}', width: 256, height: 256 },
    },
  },
  edges: [],
}

export const storyteller: Actor = {
  name: 'workflow',
  organization: 'research',
  async run(client, box) {
    for (let at = 1; !box.over.aborted; at++) {
      const answer = await client.submit('/api/workflows/run', { name: `Story ${at}`, dag }, `story-${at}`)
      const { id } = answer.execution as { id: string }
      const check = async () => {
        const found = await client.get(`/api/workflow-executions/${id}`)
        const { status, error } = (found?.execution ?? {}) as { status?: string; error?: unknown }
        if (status === undefined || status === 'pending' || status === 'running') return undefined
        return status === 'completed' ? null : `it is ${status}: ${JSON.stringify(error)}`
      }
      box.acknowledged.push({ kind: 'execution', id, at: box.now(), check })
      await delay(9_000)
    }
  },
}

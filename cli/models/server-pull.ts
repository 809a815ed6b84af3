import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { selfCommand } from '../../core/assets.ts'
import { hostEnvironment } from '../../core/config.ts'
import { Failure, type FailureCode, failures } from '../../core/failure.ts'
import type { ModelPull, ModelPullEvent } from '../../core/models/model-pull.ts'

/** Names of the hub in references of Ollama's clients. */
const ofHub = /^(?:hf\.co|huggingface\.co)\/([^/:\s]+\/[^/:\s]+)(?::([^/\s]+))?$/

/**
 * Returns what `infer model add` takes for a name in Ollama's form: a short name of the catalog or a repository of the
 * hub. Files of this machine and other addresses cannot be named. Throws Failure `invalid_value`, `model_not_found`.
 */
async function addable(name: string): Promise<string> {
  const [, repository, file] = ofHub.exec(name) ?? []
  if (repository !== undefined) return `hf:${repository}${file === undefined || file === 'latest' ? '' : `:${file}`}`
  if (/^hf:[^/\s]+\/[^/\s]+$/.test(name)) return name
  const { findCatalogModel, nearestCatalogNames } = await import('../../core/models/model-catalog/model-catalog.ts')
  const { didYouMean } = await import('../../core/nearest.ts')
  const model = findCatalogModel(name.replace(/:latest$/, ''))
  if (model) return model.name
  throw new Failure(
    'model_not_found',
    `The catalog has no model '${name.slice(0, 128)}'.${didYouMean(nearestCatalogNames(name))} See the names with: infer model catalog. For a repository of the hub, write hf.co/owner/name.`,
    { param: 'model' },
  )
}

interface CommandEvent {
  event: string
  file?: string
  bytes?: number
  total_bytes?: number
}

function progressOf({ event, file, bytes, total_bytes: total }: CommandEvent): ModelPullEvent | undefined {
  if (event === 'connect') return { status: 'pulling manifest' }
  if (event === 'progress' && file !== undefined) return { file, bytes: bytes ?? 0, total: total ?? 0 }
  if (event === 'file' && file !== undefined) return { file, bytes: bytes ?? 0, total: bytes ?? 0 }
  return undefined
}

/** Returns the failure that the command has printed. */
function failureIn(text: string): Failure {
  const line = text.trimEnd().split('\n').at(-1) ?? ''
  try {
    const { error } = JSON.parse(line) as { error: { code: string; message: string } }
    if (error.code in failures && error.code !== 'internal_error')
      return new Failure(error.code as FailureCode, error.message)
  } catch {
    // Falls through.
  }
  return new Failure('worker_error', 'The download ended with an error that the log of this server has.', {
    cause: text,
  })
}

/** Bytes of its output that are kept for messages. */
const maxKept = 1 << 16

/**
 * Returns the function with which the server downloads models: it runs `infer model add` as a process of its own, so that
 * the download uses neither the memory nor the event loop of the server, and a proxy for it changes no other request.
 */
export const openServerPull =
  ({ dataDir, configPath }: { dataDir: string; configPath: string }): ModelPull =>
  async (name, { signal, onEvent }) => {
    const what = await addable(name)
    signal.throwIfAborted()
    const config = existsSync(configPath) ? ['--config', resolve(configPath)] : []
    const args = ['model', 'add', what, '--events', '--json', '--data-dir', resolve(dataDir), ...config]
    const self = selfCommand(args)
    const { INFER_URL: _url, INFER_TOKEN: _token, ...environment } = hostEnvironment()
    const child = spawn(self.file, self.args, {
      cwd: dataDir,
      env: { ...environment, ...self.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const stop = () => void child.kill('SIGINT')
    signal.addEventListener('abort', stop)
    let errors = ''
    let result = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-maxKept)
    })
    createInterface({ input: child.stdout }).on('line', line => {
      if (!line.startsWith('{"event":')) {
        result = (result + line).slice(-maxKept)
        return
      }
      const event = progressOf(JSON.parse(line) as CommandEvent)
      if (event) onEvent(event)
    })
    try {
      const code = await new Promise<number | null>((resolve, reject) => {
        child.once('error', reject).once('close', resolve)
      })
      signal.throwIfAborted()
      if (code !== 0) throw failureIn(errors)
    } finally {
      signal.removeEventListener('abort', stop)
    }
    onEvent({ status: 'writing manifest' })
    return (JSON.parse(result) as { model: { id: string } }).model.id
  }

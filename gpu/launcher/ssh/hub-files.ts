import type { ChildProcess } from 'node:child_process'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { jsonOf } from '../../../core/json.ts'
import type { SnapshotFiles } from '../../../core/models/hub/snapshot.ts'
import { quoted } from './ssh-command.ts'

/** Where the machine may have the repository of `folder`, first those that somebody else has filled. */
export const hubFolders = (cache: string, folder: string): string[] => [
  folder,
  join(cache, 'huggingface/hub', basename(folder)),
  join(fetchCache(cache), basename(folder)),
]

/** The hub cache of what infer has downloaded there; `infer pool clean` removes it. */
const fetchCache = (cache: string): string => join(cache, 'infer/models/hub')

/** A script that prints the first of these folders that has all the files, by size and by hash, or nothing. */
export function findHubScript(folders: readonly string[], { commit, files }: SnapshotFiles): string {
  const tests = files.map(({ name, bytes, hash }) => {
    const file = `"$f"/${quoted(`snapshots/${commit}/${name}`)}`
    return `test "$(stat -Lc %s ${file} 2>/dev/null)" = ${bytes} && test -e "$f"/blobs/${hash}`
  })
  return `for f in ${folders.map(quoted).join(' ')}; do ${tests.join(' && ')} && { printf %s "$f"; exit 0; }; done; exit 0`
}

/** The words that download these files there. `endpoint`: the hub of this server, if it is not the usual one. */
export function fetchWords(
  program: readonly string[],
  cache: string,
  { repository, commit, files }: SnapshotFiles,
  endpoint: string | undefined,
): string[] {
  return [
    'env',
    ...(endpoint === undefined ? [] : [`HF_ENDPOINT=${endpoint}`]),
    ...program,
    'model',
    'fetch',
    `hf:${repository}@${commit}`,
    ...files.flatMap(({ name }) => ['--file', name]),
    '--cache',
    fetchCache(cache),
    '--json',
  ]
}

/** Follows a download there to its end. `progress` gets the bytes of all its files so far. Rejects with the reason. */
export async function followFetch(child: ChildProcess, progress: (bytes: number) => void): Promise<void> {
  const bytesOf = new Map<string, number>()
  let errors = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2_000)
  })
  child.stdin?.end()
  const lines = createInterface({ input: child.stdout! }).on('line', line => {
    const event = jsonOf(line) as { event?: unknown; file?: unknown; bytes?: unknown } | undefined
    if (typeof event?.file !== 'string' || typeof event.bytes !== 'number') return
    bytesOf.set(event.file, event.bytes)
    progress([...bytesOf.values()].reduce((sum, bytes) => sum + bytes, 0))
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve)
  })
  lines.close()
  const last = errors.trim().split('\n').at(-1) ?? ''
  const { error } = (jsonOf(last) ?? {}) as { error?: { message?: string } }
  if (code !== 0) throw new Error(error?.message ?? (last || `it has ended with ${code}`))
}

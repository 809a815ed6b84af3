import { readdir } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Client } from '../../../cli/client/client.ts'
import { saveFiles } from '../../../cli/generation/save-files.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import { Failure } from '../../../core/failure.ts'
import { temporaryFolder } from '../_infer.ts'

const job = {
  id: 'job_01M80F6T1H8501V1KNVA9REGGE',
  files: [{ url: 'http://127.0.0.1/files/a.png', file_size: 3 }],
  seed: 1,
}
const terminal = openTerminal({ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} })
const bytes = () => Readable.from([Buffer.from('png')])
const client = { bytes } as unknown as Client

test.each<[place: Parameters<typeof saveFiles>[1], said: string]>([
  [{ kind: 'folder', path: '/dev/null' }, 'Files cannot be saved in /dev/null: it is not a folder.'],
  [{ kind: 'folder', path: '/dev/null/deep' }, 'Files cannot be saved in /dev/null/deep: it is not a folder.'],
  // Files cannot be created in there by any user.
  [{ kind: 'file', path: '/proc/self/a.png' }, 'Files cannot be saved in /proc/self: '],
])('a failed write is reported at once, with how to save elsewhere: %j', async (place, said) => {
  const troubles: string[] = []
  const saving = { signal: new AbortController().signal, topic: 'cat', suffix: '' }
  const saved = saveFiles(job, place, () => client, terminal, { ...saving, onTrouble: text => troubles.push(text) })
  await expect(saved).rejects.toMatchObject({
    exitCode: 74,
    message: expect.stringContaining(said) as string,
  })
  await expect(saved).rejects.toThrow(`Save them elsewhere: infer job watch ${job.id} --out folder/`)
  expect(troubles).toEqual([])
})

test('a download that fails before its file is open leaves no file', async () => {
  const [folder, signal] = [temporaryFolder(), new AbortController().signal]
  const expired = new Failure('output_expired', 'The file is no longer kept.')
  const refusing = { bytes: () => new Readable({ read() {} }).destroy(expired) } as unknown as Client
  const saving = { signal, topic: 'cat', suffix: '', onTrouble() {} }
  for (let round = 0; round < 20; round++) {
    const saved = saveFiles(job, { kind: 'folder', path: folder }, () => refusing, terminal, saving)
    await expect(saved).rejects.toThrow('no longer kept')
  }
  expect(await readdir(folder)).toEqual([])
})

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getLlama, type Llama, LlamaLogLevel } from 'node-llama-cpp'
import { expect, test } from 'vitest'
import { writeGguf } from '../../../../bin/gguf-writer.ts'
import { architectures } from '../../../../gpu/engines/gguf/architectures.ts'

const root = join(import.meta.dirname, '../../../..')
const golden = join(root, 'gpu/engines/gguf/architectures.json')

/** Every text in the library that may be a name; also their ends, because linkers store the end of a text only once. */
function textsInLibrary(): Set<string> {
  const folder = join(root, `node_modules/@node-llama-cpp/linux-${process.arch}/bins/linux-${process.arch}`)
  const name = readdirSync(folder).find(file => /^libllama\.v.*\.so$/.test(file))!
  const texts = readFileSync(join(folder, name), 'latin1').match(/(?<=\0)[\w-]{2,31}(?=\0)/g) ?? []
  return new Set(texts.flatMap(text => Array.from(text, (_, at) => text.slice(at))))
}

/** Names that the library knows and loads no model of: it says so when it loads one. */
async function refused(llama: Llama, messages: () => string, names: readonly string[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'infer-architectures-'))
  try {
    const modelPath = join(folder, 'model.gguf')
    for (const name of [...names, 'last-of-all']) {
      writeFileSync(modelPath, writeGguf({ 'general.architecture': ['string', name] }, []))
      await llama.loadModel({ modelPath, vocabOnly: true, gpuLayers: 0 }).catch(() => undefined)
    }
    await expect.poll(messages).toContain("'last-of-all'")
  } finally {
    rmSync(folder, { recursive: true })
  }
  return names.filter(
    name =>
      messages().includes(`unsupported model architecture: '${name}'`) ||
      (name === 'clip' && messages().includes('CLIP cannot be used as main model')),
  )
}

test('the list of architectures is that of the library', async () => {
  let log = ''
  const llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
    logger: (_level, text) => (log += text),
  })
  const library = llama as unknown as { _bindings: { getIsArchSupported(name: string): boolean } }
  const known = [...textsInLibrary()].filter(name => library._bindings.getIsArchSupported(name)).toSorted()
  expect(known.length).toBeGreaterThan(100)
  const update = Boolean(process.env.UPDATE_GOLDEN)
  // To load a file for each name takes seconds, so only those that are not in the list are tried otherwise.
  const unusable = await refused(llama, () => log, update ? known : known.filter(name => !architectures.has(name)))
  const loaded = known.filter(name => !unusable.includes(name))
  if (update) writeFileSync(golden, `${JSON.stringify(loaded)}\n`)
  expect(loaded, 'UPDATE_GOLDEN=1 writes it').toEqual(JSON.parse(readFileSync(golden, 'utf8')))
})

import { access, open, readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { objectOf } from '../json.ts'
import { partsOf } from './gguf-parts.ts'

/** The first bytes of the file that Git LFS leaves in place of a large one. Source: the specification of Git LFS. */
const pointerStart = 'version https://git-lfs.github.com/spec/'
/** The specification limits pointers to less than this, in bytes. */
const maxPointer = 1024
const pointerCure = "fetch the file itself with 'git lfs install' and 'git lfs pull' in the folder of the repository."

const whole = 'download the whole model.'

const weights = /\.(safetensors|sft|gguf|bin|pt|pth|ckpt|onnx|npz|nemo|msgpack|h5)$/i
/** The list of the files over which the weights of a model are divided. */
const weightsIndex = /\.(safetensors|bin)\.index\.json$/i
const maxIndex = 64 << 20

/**
 * Returns those of these files that do not exist. Looks at one after the other, as all that look at files of models: a mount
 * that does not answer then holds one of the few threads that read files for the whole server.
 */
export async function absent(files: readonly string[]): Promise<string[]> {
  const missing: string[] = []
  for (const file of files) await access(file).catch(() => missing.push(file))
  return missing
}

/**
 * Returns why the files of a model are not all there, as a sentence that begins with the path: it does not exist, is a
 * pointer of Git LFS, or lacks some of its weights. Undefined if nothing is missing. Reads names and first bytes only.
 */
export async function missingFiles(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => null)
  if (!found) return `'${path}' does not exist.`
  if (found.isDirectory()) return (await folderFaults(path)).fault
  if (await isPointer(path)) return `'${path}' is a pointer of Git LFS, not the model: ${pointerCure}`
  const missing = await absent(partsOf(path))
  return missing.length === 0 ? undefined : partsFault(path, missing)
}

/** The sentence about the parts that a model lacks. */
export const partsFault = (path: string, missing: readonly string[]): string =>
  `'${path}' lacks ${nameList(missing)}: put all parts of the model into one folder.`

const maxNames = 3

const nameList = ([first = '', ...others]: readonly string[]): string =>
  others.length < maxNames
    ? [first, ...others].map(path => `'${basename(path)}'`).join(', ')
    : `'${basename(first)}' and ${others.length} more files`

async function isPointer(path: string): Promise<boolean> {
  const file = await open(path).catch(() => null)
  if (!file) return false
  try {
    const { size } = await file.stat()
    if (size >= maxPointer) return false
    const head = Buffer.alloc(pointerStart.length)
    await file.read(head, 0, head.length, 0)
    return head.toString('latin1') === pointerStart
  } finally {
    await file.close()
  }
}

/** What is wrong with the folder of a model. */
interface FolderFaults {
  fault: string | undefined
  /** What is wrong with folders in it that no engine reads. */
  beside: string[]
}

/**
 * The same for a folder. The model is what is in it and, in a pipeline, in the folders of its parts; without weights of
 * its own and in a hub's cache, what is in any folder below it.
 */
async function folderFaults(root: string): Promise<FolderFaults> {
  const parts = await partsOfPipeline(root)
  const isModel = parts === undefined && (await readdir(root).catch((): string[] => [])).some(one => weights.test(one))
  const beside: string[] = []
  let hasAny = false
  for (const name of ['', ...(await foldersIn(root))]) {
    const isOwn = name === '' || (parts ? parts.has(name.split(sep)[0]!) : !isModel)
    const { fault, hasWeights } = await faultIn(join(root, name), parts?.has(name) === true)
    if (isOwn && fault !== undefined) return { fault, beside }
    if (fault !== undefined) beside.push(fault)
    hasAny ||= isOwn && hasWeights
  }
  const fault = hasAny ? undefined : `'${root}' has no weights, such as .safetensors files: ${whole}`
  return { fault, beside }
}

/** Returns sentences about folders beside the files of a model, which no engine reads: they refuse nothing. */
export const strayFolders = async (path: string): Promise<string[]> => (await folderFaults(path)).beside

/** What is wrong with the files in one folder, without those below it. */
async function faultIn(folder: string, isPart: boolean): Promise<{ fault: string | undefined; hasWeights: boolean }> {
  const names = await readdir(folder).catch((): string[] => [])
  const found = names.filter(one => weights.test(one))
  const hasWeights = found.length > 0
  for (const one of found)
    if (await isPointer(join(folder, one))) {
      const fault = `'${join(folder, one)}' is a pointer of Git LFS, not the weights: ${pointerCure}`
      return { fault, hasWeights }
    }
  for (const index of names.filter(one => weightsIndex.test(one))) {
    const missing = await absent((await filesOf(join(folder, index))).map(one => join(folder, one)))
    if (missing.length > 0)
      return { fault: `'${folder}' lacks ${nameList(missing)}, which ${index} lists: ${whole}`, hasWeights }
  }
  // Of the parts of a pipeline, those with weights have a configuration of this name.
  const isEmpty = isPart && !hasWeights && names.includes('config.json')
  return { fault: isEmpty ? `'${folder}' has no weights: ${whole}` : undefined, hasWeights }
}

/** The names of the parts that the index of a pipeline lists; undefined if there are none. */
async function partsOfPipeline(root: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const index = objectOf(JSON.parse(await readFile(join(root, 'model_index.json'), 'utf8')))
    const parts = Object.keys(index).filter(name => Array.isArray(index[name]) && index[name][0] != null)
    return parts.length === 0 ? undefined : new Set(parts)
  } catch {
    return undefined
  }
}

/** Deeper folders are not looked at: those of a hub's cache have the files of a model in the second. */
const maxDepth = 3

/** Paths of the folders below a folder. */
async function foldersIn(root: string, below = '', depth = 1): Promise<string[]> {
  const names = await readdir(join(root, below)).catch((): string[] => [])
  const paths = names.map(name => join(below, name))
  const found = await Array.fromAsync(paths, path => stat(join(root, path)).catch(() => null))
  const folders = paths.filter((_, at) => found[at]?.isDirectory() === true)
  if (depth === maxDepth) return folders
  return [...folders, ...(await Array.fromAsync(folders, path => foldersIn(root, path, depth + 1))).flat()]
}

/** The files that an index names; none if it cannot be read, which the engine reports. */
async function filesOf(index: string): Promise<string[]> {
  try {
    if ((await stat(index)).size > maxIndex) return []
    const { weight_map: map } = objectOf(JSON.parse(await readFile(index, 'utf8')))
    return [...new Set(Object.values(objectOf(map)).filter(name => typeof name === 'string'))].filter(
      name => dirname(name) === '.',
    )
  } catch {
    return []
  }
}

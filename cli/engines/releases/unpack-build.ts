import { chmod, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Failure } from '../../../core/failure.ts'
import { extractMember, listMembers } from '../../../core/models/package-index/extract-member.ts'
import { extractTarball, isFileName, pathWithin } from '../../../core/models/package-index/extract-tarball.ts'

/** Maximum bytes that an archive may become; the libraries of CUDA have 1 GB. */
const maxUnpacked = 8e9

/** The largest depth at which an archive has its program, such as `build/bin/llama-server`. */
const maxDepth = 4

/**
 * Unpacks the archive of a program into `folder`, which must not exist: everything that lies beside the program goes to
 * `bin`. Archives of libraries go there too. Rejects with Failure `worker_error` for an archive without the program, one
 * that is damaged, or one with paths or links that leave it.
 */
export async function unpackBuild(
  { program, archive, libraries }: { program: string; archive: string; libraries: string | null },
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const whole = join(folder, 'archive')
  await extract(archive, whole, signal)
  const found = await findFile(whole, program, maxDepth)
  if (found === undefined)
    throw new Failure('worker_error', `${archive} has no program '${program}'. Choose another release with --release.`)
  const bin = join(folder, 'bin')
  await rename(found, bin)
  await chmod(join(bin, program), 0o755)
  await rm(whole, { recursive: true, force: true })
  if (libraries === null) return
  const others = join(folder, 'libraries')
  await extract(libraries, others, signal)
  for (const entry of await readdir(others, { withFileTypes: true, recursive: true }))
    if (/\.so(\.[\d.]+)?$/.test(entry.name)) await rename(join(entry.parentPath, entry.name), join(bin, entry.name))
  await rm(others, { recursive: true, force: true })
}

async function extract(archive: string, folder: string, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 })
  if (archive.endsWith('.zip')) return await extractZip(archive, folder, signal)
  await extractTarball(archive, folder, { kind: 'program', signal })
}

/** Permission bits and kinds of files, as in `st_mode`. */
const [executable, kindBits, linkKind] = [0o100, 0o170000, 0o120000]

async function extractZip(archive: string, folder: string, signal: AbortSignal): Promise<void> {
  const members = await listMembers(archive)
  const bytes = members.reduce((sum, one) => sum + one.bytes, 0)
  if (bytes > maxUnpacked) throw new Failure('worker_error', `${archive} would become ${bytes} bytes.`)
  for (const { path, mode } of members) {
    const target = join(folder, pathWithin(path, archive))
    if (path.endsWith('/')) continue
    await mkdir(dirname(target), { recursive: true, mode: 0o755 })
    await extractMember(archive, path, target, signal)
    if ((mode & kindBits) === linkKind) {
      const link = await readFile(target, 'utf8')
      if (!isFileName(link))
        throw new Failure('worker_error', `${archive} has a link '${path}' that leaves its folder.`)
      await rm(target)
      await symlink(link, target)
    } else if ((mode & executable) !== 0) await chmod(target, 0o755)
  }
}

/** The folder of a file, at most `depth` folders below; undefined if there is none. */
async function findFile(folder: string, name: string, depth: number): Promise<string | undefined> {
  const entries = await readdir(folder, { withFileTypes: true })
  if (entries.some(entry => entry.isFile() && entry.name === name)) return folder
  for (const entry of depth > 0 ? entries : []) {
    const found = entry.isDirectory() ? await findFile(join(folder, entry.name), name, depth - 1) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

import type { PortHolder } from '../../core/port-holder.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Checks of the data directory, the configuration and the address. Pure: the caller passes the measurements. */

export interface DirectoryFacts {
  path: string
  /** Permission bits; undefined when there is no such directory yet. */
  mode: number | undefined
  owner: number
  user: number
  /** The file system type that statfs returns. */
  fileSystem: number
  /** Files in it that contain secrets and that other users can read. */
  readable: readonly string[]
}

const networkFileSystems: Record<number, string> = {
  0x6969: 'NFS',
  0xff534d42: 'SMB',
  0xfe534d42: 'SMB',
  0x517b: 'SMB',
  0x65735546: 'FUSE',
  0x00c36400: 'Ceph',
}

export function checkDirectory({ path, mode, owner, user, fileSystem, readable }: DirectoryFacts): Finding {
  const name = 'data directory'
  if (mode === undefined) return fine(name, `${path} is created at the first start`)
  if (owner !== user && user !== 0)
    return broken(
      name,
      `${path} belongs to user ${owner}, you are ${user}`,
      `Run infer as its owner, or: sudo chown -R ${user} ${path}`,
    )
  if (mode & 0o022) return broken(name, `others can write to ${path} (mode ${octal(mode)})`, `chmod 700 ${path}`)
  const network = networkFileSystems[fileSystem]
  if (network)
    return warning(
      name,
      `${path} is on ${network}, where acknowledged writes can be lost`,
      'Put it on a local disk with --data-dir.',
    )
  if (readable.length > 0)
    return warning(
      name,
      `others can read ${readable.join(' and ')} in ${path}`,
      `chmod 600 ${readable.map(file => `${path}/${file}`).join(' ')}`,
    )
  if (mode & 0o077) return warning(name, `others can list ${path} (mode ${octal(mode)})`, `chmod 700 ${path}`)
  return fine(name, `${path}, only you have access`)
}

export function checkDisk({
  path,
  freeBytes,
  minFreeBytes,
}: {
  path: string
  freeBytes: number
  minFreeBytes: number
}): Finding {
  const detail = `${sizeText(freeBytes)} free at ${path}`
  if (freeBytes < minFreeBytes)
    return broken(
      'disk',
      `${detail}, less than the required ${sizeText(minFreeBytes)}: new jobs are refused`,
      'Free disk space, or lower limits.min_free_disk in infer.yaml.',
    )
  return freeBytes < 2 * minFreeBytes
    ? warning('disk', `${detail}; below ${sizeText(minFreeBytes)} new jobs are refused`, 'Free disk space soon.')
    : fine('disk', detail)
}

export interface AddressFacts {
  listen: string
  /** The server of this data directory, when its process is alive. */
  running: { url: string; pid: number; listen?: string | undefined; ready: boolean } | undefined
  /** The system's error for listening on the address; undefined when it is free. */
  refusal: string | undefined
  /** The process that listens there, if it could be found. */
  holder?: PortHolder | undefined
}

export function checkAddress({ listen, running, refusal, holder }: AddressFacts): Finding {
  if (running)
    return running.ready
      ? fine('address', `the server ${addressText(running)} (process ${running.pid})`)
      : warning(
          'address',
          `the server at ${running.url} (process ${running.pid}) is not ready`,
          'Wait a few seconds, or read its log: infer logs',
        )
  if (refusal === undefined) return fine('address', `${listen} is free`)
  if (refusal === 'EADDRINUSE') {
    if (!holder)
      return broken('address', `${listen} is taken by another program`, 'Stop it, or choose another with --listen.')
    const { pid, program, dataDir } = holder
    const who = dataDir === undefined ? program : `an infer server on ${dataDir}`
    return broken(
      'address',
      `${listen} is taken by ${who} (process ${pid})`,
      `Stop it with 'kill ${pid}', or choose another with --listen.`,
    )
  }
  return broken('address', `${listen} cannot be listened on (${refusal})`, 'Choose another with --listen.')
}

/** Names the socket too if it accepts connections to every address of the machine, because the URL does not show that. */
const addressText = ({ url, listen }: NonNullable<AddressFacts['running']>): string =>
  listen && /^(?:0\.0\.0\.0|\[::\]):/.test(listen) ? `listens on ${listen}, here ${url}` : `runs at ${url}`

interface ConfigurationFacts {
  path: string
  exists: boolean
  /** The first error in it, as a sentence. */
  fault: string | undefined
  models: number
}

export function checkConfiguration({ path, exists, fault, models }: ConfigurationFacts): Finding {
  if (fault !== undefined) return broken('configuration', fault, `Correct ${path}.`)
  if (!exists) return fine('configuration', `none at ${path}; the server offers the models that ship with infer`)
  return fine(
    'configuration',
    `${path}: ${models === 0 ? 'no models, so the server offers those that ship with infer' : `${models} ${models === 1 ? 'model' : 'models'}`}`,
  )
}

/** Checks that the files of models exist. `shipped`: the models are those that ship with infer. */
export function checkModelFiles(
  models: readonly { id: string; source: string; exists: boolean }[],
  shipped: boolean,
): Finding {
  const missing = models.filter(({ exists }) => !exists)
  if (missing.length === 0) return fine('model files', models.length === 0 ? 'none to check' : 'all exist')
  if (shipped) return broken('model files', 'the models that ship with infer are not built yet', 'Run: npm run build')
  return broken(
    'model files',
    missing.map(({ id, source }) => `${id}: there is no ${source}`).join('; '),
    'Put the files there, or correct "source" in infer.yaml.',
  )
}

const octal = (mode: number): string => (mode & 0o777).toString(8)

export interface MasterKeyFacts {
  dataDir: string
  /** Whether INFER_MASTER_KEY is set. */
  inEnvironment: boolean
  /** INFER_MASTER_KEY_FILE. */
  file: string | undefined
  /** Permission bits of that file; undefined where it does not exist. */
  mode: number | undefined
}

/** Checks where the master key comes from. Pure. */
export function checkMasterKey({ dataDir, inEnvironment, file, mode }: MasterKeyFacts): Finding {
  const name = 'master key'
  if (file !== undefined && inEnvironment)
    return broken(name, 'INFER_MASTER_KEY and INFER_MASTER_KEY_FILE are both set', 'Unset INFER_MASTER_KEY.')
  if (inEnvironment)
    return warning(
      name,
      'INFER_MASTER_KEY stays visible in the environment of the process (/proc/<pid>/environ, process managers, dumps)',
      'Write the key to a file with mode 0600 and set INFER_MASTER_KEY_FILE to its path.',
    )
  if (file === undefined) return fine(name, `in ${dataDir}/master-key, created at the first start`)
  if (mode === undefined)
    return broken(name, `there is no file ${file}`, 'Create it, or correct INFER_MASTER_KEY_FILE.')
  if (mode & 0o077)
    return warning(name, `others can read ${file} (mode ${(mode & 0o777).toString(8)})`, `chmod 600 ${file}`)
  return fine(name, `in ${file}`)
}

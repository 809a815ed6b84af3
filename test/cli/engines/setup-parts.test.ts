import { describe, expect, test } from 'vitest'
import { workerFiles } from '../../../bin/bundle.ts'
import { divideRequirements, environmentKinds, torchBuild } from '../../../cli/engines/environment-kinds.ts'
import { configuredIndex } from '../../../cli/engines/python-tools.ts'
import { failureFor } from '../../../cli/engines/run-installer.ts'

describe('a failed installer', () => {
  const cases: [name: string, output: string, sentence: RegExp][] = [
    [
      'Debian without python3-venv',
      'The virtual environment was not created successfully because ensurepip is not available.',
      /apt install python3-venv/,
    ],
    ['a full disk', 'ERROR: [Errno 28] No space left on device', /The disk is full.*continues/],
    [
      'a package that was changed',
      'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.',
      /differs from the one that infer was tested with/,
    ],
    [
      'pip without a network',
      "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\nERROR: No matching distribution found for av",
      /cannot be reached.*--index-url/,
    ],
    ['uv without a network', 'error: Failed to fetch: `http://127.0.0.1:1/simple/av/`', /cannot be reached/],
    [
      'uv without a way to the index of PyTorch',
      'error: Failed to fetch: `https://download.pytorch.org/whl/cpu/torch/`',
      /index of PyTorch cannot be reached.*--torch-index-url.*continues/,
    ],
    [
      'pip without a way to the index of PyTorch',
      "WARNING: Retrying after connection broken by 'NewConnectionError(HTTPSConnection(host='download.pytorch.org'))'",
      /index of PyTorch cannot be reached.*--torch-index-url/,
    ],
    [
      'an index without the package',
      'ERROR: Could not find a version that satisfies the requirement av==18.1.0',
      /has not all packages/,
    ],
    ['anything else', 'Segmentation fault', /pip ended with exit code 1.*not complete[^]*Segmentation fault/],
  ]
  test.each(cases)('%s', (_name, output, sentence) => {
    expect(failureFor('pip', output, 'with exit code 1').message).toMatch(sentence)
  })
  test('the login of an index is not shown', () => {
    const { message } = failureFor('pip', 'Looking in indexes: https://me:secret@pypi.example.com/simple', 'with 1')
    expect(message).toContain('https://pypi.example.com/simple')
    expect(message).not.toContain('secret')
  })
})

describe('builds of PyTorch', () => {
  test('are found in their index', () => {
    expect(torchBuild({})).toBeUndefined()
    expect(torchBuild({ cuda: '12.8' })).toEqual({ name: 'cu128', index: 'https://download.pytorch.org/whl/cu128' })
    expect(torchBuild({ cpu: true, torchIndexUrl: 'http://mirror/whl/' })!.index).toBe('http://mirror/whl/cpu')
  })
  test('replace the packages of the list that belong to the other build', () => {
    const { common, torch } = divideRequirements(workerFiles()['lock-diffusion.txt']!)
    expect(torch).toEqual([expect.stringMatching(/^torch==\d/), expect.stringMatching(/^torchvision==\d/)])
    expect(common).toMatch(/^diffusers==/m)
    expect(common).toMatch(/^torchao==/m)
    expect(common).not.toMatch(/^(torch|triton|nvidia-\S+|cuda-\S+)==/m)
  })
})

test('every requirement has a version and a hash', () => {
  const files = workerFiles()
  for (const { requirements: name } of Object.values(environmentKinds))
    for (const requirement of files[name]!.trim().split(/\n(?=\S)/))
      expect(requirement).toMatch(/^[a-z0-9._-]+==[^\s;]+( ; [^\n]+)? \\\n( {4}--hash=sha256:[0-9a-f]{64}( \\)?\n?)+$/)
  expect(Object.keys(files)).toContain('infer_worker/__main__.py')
})

test('every tool uses the index that one of them is configured with', () => {
  expect(configuredIndex({})).toBeUndefined()
  expect(configuredIndex({ PIP_INDEX_URL: 'http://pip/simple', UV_INDEX_URL: ' ' })).toBe('http://pip/simple')
  expect(configuredIndex({ PIP_INDEX_URL: 'http://pip/simple', INFER_PYPI_INDEX: 'http://own' })).toBe('http://own')
})

import { expect, test } from 'vitest'
import { faultOf } from './_command-line.ts'
import { shellCommands } from './_shell-commands.ts'

test.each<[string, string[][]]>([
  ['infer run a "b c" # why', [['infer', 'run', 'a', 'b c']]],
  [
    "git diff | infer run x 'it''s'",
    [
      ['git', 'diff'],
      ['infer', 'run', 'x', 'its'],
    ],
  ],
  ['id=$(infer run demo "a cat" --no-wait)', [['infer', 'run', 'demo', 'a cat', '--no-wait']]],
  [
    'source <(infer completion bash)',
    [
      ['infer', 'completion', 'bash'],
      ['source', '<(infer completion bash)'],
    ],
  ],
  ['INFER_URL=x infer chat && echo ok; ls', [['infer', 'chat'], ['echo', 'ok'], ['ls']]],
  ['sudo -u infer infer doctor > out 2>&1 &', [['infer', 'doctor']]],
  ['npm install \\\n  --prefix x', [['npm', 'install', '--prefix', 'x']]],
  ['cat > f <<EOF\ninfer nonsense\nEOF\ninfer ls', [['cat'], ['infer', 'ls']]],
  [
    'curl -d "{\\"a\\": \\"$(infer ls)\\"}" u',
    [
      ['infer', 'ls'],
      ['curl', '-d', '{"a": "$(infer ls)"}', 'u'],
    ],
  ],
  [
    'if infer ls; then infer ps; fi',
    [
      ['infer', 'ls'],
      ['infer', 'ps'],
    ],
  ],
])('%j', (script, commands) => expect(shellCommands(script)).toEqual(commands))

test.each<[string[], string | undefined]>([
  [['model', 'list'], undefined],
  [['model', 'add', 'x.gguf', '--id', 'x', '--context=16384'], undefined],
  [['help', 'jobs'], undefined],
  [['help', 'model', 'add'], undefined],
  [['help', 'nothing'], 'no guide nothing'],
  [['model', 'ad'], 'no command ad'],
  [['serve', '--port', '1'], 'no option --port'],
  [['model', 'show'], 'needs 1'],
  [['serve', 'now'], 'takes 0'],
])('infer %j', async (args, fault) => {
  const found = await faultOf(args, ['jobs'])
  if (fault === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(fault)
})

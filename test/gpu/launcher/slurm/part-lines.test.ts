import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findProgram } from '../../../../gpu/sandbox/program.ts'

const folder = join(import.meta.dirname, '../../../../gpu/launcher/slurm')
const text = (name: string) => readFileSync(join(folder, name), 'utf8')

/** The first part, to which srun says this. Standard output of the script is the log. */
const script = `${text('wrapper.py')}\n\n${text('nodes.py')}
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
first = First({}, loop)
first.word = 'word'
first.step = subprocess.Popen(['printf', '%s', json.loads(r'''LINES''').encode()], stdout=subprocess.PIPE)
loop.run_until_complete(first.listen_to_parts())
`

test.skipIf(!findProgram('python3', process.env.PATH ?? ''))(
  'lines of parts are logged in any locale, and the end of a part is read from them',
  () => {
    const lines = String.raw`0: caf\u00e9 \u2588\nsrun: a note\n1: plain\n1: word SIGKILL gpu7\n`
    // As Python 3.6 is in the locale of a job: it knows ASCII only.
    const output = execFileSync('python3', ['-X', 'utf8=0', '-I', '-'], {
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      input: script.replace('LINES', `"${lines}"`),
      encoding: 'utf8',
    })
    expect(output.split('\n')).toEqual([
      'rank 1: café █',
      'srun: a note',
      'rank 2: plain',
      "Its part on the node 'gpu7' has ended with SIGKILL.",
      '',
    ])
  },
)

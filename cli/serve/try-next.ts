import { dirname, resolve } from 'node:path'
import { commandTasks } from '../client/command-tasks.ts'

/** Facts for the examples. */
interface TryFacts {
  own: OwnCommand
  url: string
  /** The self-signed certificate that clients must trust; undefined if they need none. */
  trust?: string | undefined
  /** A base URL that other machines can reach; undefined if there is none. */
  lan?: string | undefined
  tokenPath: string
  models: readonly { id: string; tasks: readonly string[] }[]
}

/** An example to paste into a shell. */
interface Example {
  label: string
  lines: string[]
}

/** Quotes a word for a POSIX shell if necessary. */
export const shellWord = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Returns commands that work when pasted: curl, and the OpenAI clients of Python and JavaScript, which take URL and
 * token from the environment. The shell reads the token from its file, so that it does not appear in the history.
 */
export function tryNext({ own, url, lan, trust, tokenPath, models }: TryFacts): Example[] {
  const token = `$(cat ${shellWord(tokenPath)})`
  const chat = models.find(({ tasks }) => tasks.includes(commandTasks.chat))
  const embeddings = models.find(({ tasks }) => tasks.includes(commandTasks.embed))
  const curl = (path: string, body?: object): string =>
    `curl ${trust === undefined ? '' : `--cacert ${shellWord(trust)} `}${url}${path} -H "Authorization: Bearer ${token}"${body ? ` -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'` : ''}`
  if (!chat) {
    const line = embeddings
      ? curl('/std/v1/embeddings', { model: embeddings.id, input: 'Hello' })
      : curl('/std/v1/models')
    return [{ label: 'curl', lines: [line] }]
  }
  const trusted =
    trust === undefined ? '' : ` SSL_CERT_FILE=${shellWord(trust)} NODE_EXTRA_CA_CERTS=${shellWord(trust)}`
  const environment = `export OPENAI_BASE_URL=${url}/std/v1 OPENAI_API_KEY="${token}"${trusted}`
  const request = `model="${chat.id}", messages=[{"role": "user", "content": "Hello"}]`
  const elsewhere =
    lan === undefined
      ? []
      : [
          {
            label: `From another machine (the token is in ${tokenPath})`,
            lines: [
              `INFER_URL=${lan} INFER_TOKEN=…${trust === undefined ? '' : ' NODE_EXTRA_CA_CERTS=certificate.pem'} infer chat`,
              `export OPENAI_BASE_URL=${lan}/std/v1 OPENAI_API_KEY=…`,
            ],
          },
        ]
  return [
    { label: `In another terminal${own.folder === undefined ? '' : `, in ${own.folder}`}`, lines: [own.line('chat')] },
    {
      label: 'curl',
      lines: [curl('/std/v1/chat/completions', { model: chat.id, messages: [{ role: 'user', content: 'Hello' }] })],
    },
    {
      label: 'Python (pip install openai)',
      lines: [
        environment,
        `python3 -c 'from openai import OpenAI; print(OpenAI().chat.completions.create(${request}).choices[0].message.content)'`,
      ],
    },
    {
      label: 'JavaScript (npm install openai)',
      lines: [
        environment,
        `node --input-type=module -e 'import OpenAI from "openai"; console.log((await new OpenAI().chat.completions.create({ model: "${chat.id}", messages: [{ role: "user", content: "Hello" }] })).choices[0].message.content)'`,
      ],
    },
    ...elsewhere,
  ]
}

/** How the user runs this program in a shell. */
export interface OwnCommand {
  /** Returns a command line of this program with these arguments and the same data directory. */
  line: (args: string) => string
  /** The folder in which it must run; undefined for any folder. */
  folder: string | undefined
}

/**
 * Returns the command of the executable; in a checkout the npm script, because `infer` is not installed there and `npx
 * infer` in another folder fetches an unrelated package. `script` is the file that Node runs; `dataDir` is undefined
 * for the default directory.
 */
export function ownCommand({
  packaged,
  argv0,
  script,
  dataDir,
}: {
  packaged: boolean
  argv0: string
  script: string
  dataDir: string | undefined
}): OwnCommand {
  const flag = dataDir === undefined ? '' : ` --data-dir ${shellWord(dataDir)}`
  // Without a slash the shell found it on the PATH.
  const program = packaged ? shellWord(argv0.includes('/') ? resolve(argv0) : argv0) : 'npm run infer --'
  return {
    line: args => `${program} ${args}${flag}`,
    folder: packaged ? undefined : dirname(dirname(resolve(script))),
  }
}

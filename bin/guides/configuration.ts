import { type EnvironmentVariable, engineVariables, environmentVariables } from '../../core/environment-variables.ts'
import { type ConfigKey, type ConfigSection, configKeys, defaultText, sections } from '../../core/models/config-keys.ts'
import { anchorOf } from './pages.ts'

/** The configuration reference as markdown, made from the schema of infer.yaml. */
export function configurationMarkdown(): string {
  const keys = configKeys()
  return [
    introduction,
    contents(keys),
    ...(Object.keys(sections) as ConfigSection[]).map(section => sectionText(section, keys)),
    environmentText,
  ].join('\n\n')
}

const introduction = `# Configuration

infer reads \`infer.yaml\` in the data directory (\`~/.local/share/infer\`), or the file that \`infer serve --config\` names.
Every key is optional but the \`id\` of a model. This page has each key with its default and an example.

\`\`\`sh
infer config check                # what is wrong in the file, with line and column
infer config explain memory       # one key of this page, in the terminal
infer config schema > infer.schema.json    # for editors that complete and check YAML
\`\`\`

- **Sizes** are written as \`512MiB\`, \`24GB\`, or as a number of bytes.
- **Durations** are written as \`250ms\`, \`30s\`, \`5m\`, \`2h\`, \`7d\`, or as a number of milliseconds.
- **A running server reads the file again** when it changes, and on SIGHUP. New models are offered, removed ones end after
  the requests that they have, and a changed one gets a new engine where its engine is concerned. Changed \`plans\` take effect at
  once, and all other keys outside of \`models\` at the next start; the log names those that changed.
- **A file with a mistake changes nothing.** The log, \`infer doctor\` and the metric
  \`infer_configuration_in_force\` report it.
- **Unknown keys are refused**, with the nearest known key.`

/** Links to all keys, by section. */
function contents(keys: readonly ConfigKey[]): string {
  const linked = (Object.keys(sections) as ConfigSection[]).map(section => {
    const links = keys.filter(key => key.section === section).map(({ key }) => `[\`${key}\`](#${anchorOf(key)})`)
    return `- **${sections[section].title}**: ${links.join(', ')}`
  })
  return ['## All keys', [...linked, '- [Environment variables](#environment-variables)'].join('\n')].join('\n\n')
}

function sectionText(section: ConfigSection, keys: readonly ConfigKey[]): string {
  const { title, about } = sections[section]
  const own = keys.filter(key => key.section === section)
  return [`## ${title}`, about, ...own.map(keyText)].join('\n\n')
}

function keyText(about: ConfigKey): string {
  const { key, meaning, type, unit, default: value, applies, example } = about
  const counted = unit === null || type === 'duration' || type === 'size' ? '' : ` (${unit})`
  const facts = [
    `- Type: ${type}${counted}`,
    `- Default: ${value === null ? defaultText(about) : `\`${value}\``}`,
    `- Changes take effect ${applies}.`,
  ].join('\n')
  return `### \`${key}\`\n\n${meaning}\n\n${facts}\n\n\`\`\`yaml config\n${example}\n\`\`\``
}

const rows = (variables: Readonly<Record<string, EnvironmentVariable>>): string =>
  [
    '| Variable | Meaning | Default | Example |',
    '|---|---|---|---|',
    ...Object.entries(variables).map(
      ([name, { meaning, default: value, example }]) => `| \`${name}\` | ${meaning} | ${value} | \`${example}\` |`,
    ),
  ].join('\n')

const environmentText = `## Environment variables

What commands and the server read. \`infer <command> --help\` lists those of a command.

${rows(environmentVariables)}

Engines get an environment of their own: \`PATH\`, \`LD_LIBRARY_PATH\`, \`TZ\`, \`SSL_CERT_FILE\`, \`SSL_CERT_DIR\`, \`NVIDIA_*\`,
\`CUDA_HOME\`, \`CUDA_PATH\`, \`CUDA_CACHE_PATH\` and \`CUDA_CACHE_MAXSIZE\` of the server, \`HF_HOME\`, what \`env\` of the model
says, and these, which the server sets for each launch:

${rows(engineVariables)}
`

import { createHash } from 'node:crypto'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../core/assets.ts'
import { objectOf } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { needsNewEngine } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import { optionalJson } from '../core/optional-file.ts'

/** Models whose figures are kept; those that were measured longest ago are forgotten first. */
const maxModels = 500

/** Identifies the settings of a model that concern its engine, and the version of the engines that infer brings. */
function settingsOf(model: Model): string {
  const fields = Object.entries(model).filter(([field]) => needsNewEngine(field))
  const text = JSON.stringify([version, fields.toSorted(([a], [b]) => (a < b ? -1 : 1))])
  return createHash('sha256').update(text).digest('base64url').slice(0, 22)
}

/** Engines of one kind start alike: those of one preset, or of one program and script. */
export const engineKind = ({ engine, command }: Model): string => [engine, ...(command?.slice(0, 2) ?? [])].join(' ')

/** Keeps figures of models that are finite numbers, rounded. */
export function openModelFigures<Name extends string>(
  options: { dataDir: string; log: Log },
  { file, names }: { file: string; names: readonly Name[] },
) {
  const read = (value: unknown) => {
    const figures = objectOf(value)
    if (!names.every(name => Number.isFinite(figures[name]))) return undefined
    return Object.fromEntries(names.map(name => [name, Math.round(figures[name] as number)])) as Record<Name, number>
  }
  return openModelRecords(options, { file, read })
}

/**
 * Keeps what was measured of the engine of each model, with the settings that it is true for, over restarts: a JSON file in
 * the data directory. `read` returns a record in the form that is kept; undefined for anything else.
 */
export function openModelRecords<Figures>(
  { dataDir, log }: { dataDir: string; log: Log },
  { file, read }: { file: string; read: (value: unknown) => Figures | undefined },
) {
  interface Entry {
    settings: string
    /** The kind of its engine. */
    engine?: string
    figures: Figures
  }
  const path = join(dataDir, file)
  const entries = new Map<string, Entry>()
  for (const [id, value] of Object.entries(objectOf(optionalJson(path)))) {
    const { settings, engine, figures } = objectOf(value)
    const known = read(figures)
    if (typeof settings !== 'string' || known === undefined) continue
    entries.set(id, { settings, ...(typeof engine === 'string' && { engine }), figures: known })
  }

  function write(): void {
    try {
      mkdirSync(dataDir, { recursive: true })
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(entries)))
      renameSync(`${path}.new`, path)
    } catch (thrown) {
      log.warn('Measured figures could not be stored', { path }, thrown)
    }
  }

  return {
    /** The figures of a model with its current settings; null before any. */
    of(model: Model): Readonly<Figures> | null {
      const own = entries.get(model.id)
      return own?.settings === settingsOf(model) ? own.figures : null
    },
    all: (): readonly Readonly<Figures & { engine: string }>[] =>
      Array.from(entries.values(), ({ figures, engine = '' }) => ({ ...figures, engine })),
    set(model: Model, figures: Figures): void {
      entries.delete(model.id)
      entries.set(model.id, { settings: settingsOf(model), engine: engineKind(model), figures: read(figures)! })
      if (entries.size > maxModels) entries.delete(entries.keys().next().value!)
      write()
    },
  }
}

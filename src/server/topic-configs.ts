/**
 * The configs of topics, as Kafka's clients set and see them. What was set is stored with the topic, as texts:
 *
 *   kafka/config/<topic id>  →  { 'retention.ms': '60000', 'max.message.bytes': '2000000' }
 *
 * How a log is cleaned is not read from there: a topic goes by its settings, which programs change too. So those texts
 * count as long as they say what the settings do; where they do not, settings are told as texts instead. A topic that
 * was made in process thus shows what it really does, in Kafka's words.
 */
import type { BrokerParts } from '../coordinator/broker-parts.ts'
import { invalid } from '../core/settings.ts'
import type { Topic } from '../core/topic.ts'
import type { Cleaning } from '../core/topic-settings.ts'
import { FACE_PREFIX } from '../core/topics.ts'
import type { MetaChange } from '../log/contract.ts'
import type { TopicOptions } from '../model/options.ts'
import {
  CLEANING_CONFIGS,
  cleaningOf,
  cleaningTexts,
  engineDefaults,
  isSameCleaning,
} from './cleaning-configs.ts'
import { TOPIC_CONFIGS } from './config-definitions.ts'
import { checkValue } from './config-values.ts'

/** Texts by the names of configs. */
export type ConfigTexts = Readonly<Record<string, string>>

/** What appends go by, typed. */
export interface AppendConfigs {
  readonly maxMessageBytes: number
  readonly timestampType: 'CreateTime' | 'LogAppendTime'
  /** How far behind the clock a timestamp may be, and how far ahead; Infinity for as far as it likes. */
  readonly timestampBeforeMaxMs: number
  readonly timestampAfterMaxMs: number
  readonly compressionType: string
}

const NONE: ConfigTexts = {}

export class TopicConfigs {
  readonly #parts: BrokerParts
  /** What holds where a topic says nothing. */
  readonly defaults: ReadonlyMap<string, string>
  readonly #plain: AppendConfigs
  /** By what is stored: that is another object once it is changed. */
  readonly #typed = new WeakMap<ConfigTexts, AppendConfigs>()

  constructor(parts: BrokerParts) {
    this.#parts = parts
    const defaults = new Map([...TOPIC_CONFIGS.values()].map(({ name, fallback }) => [name, fallback]))
    for (const [name, text] of engineDefaults(parts.engine)) defaults.set(name, text)
    this.defaults = defaults
    this.#plain = this.#append(NONE)
  }

  /** For every batch: two lookups. */
  of(topicId: string): AppendConfigs {
    const stored = this.#stored(topicId)
    if (stored === NONE) return this.#plain
    let typed = this.#typed.get(stored)
    if (typed === undefined) {
      typed = this.#append(stored)
      this.#typed.set(stored, typed)
    }
    return typed
  }

  /** What was set for it, or is as if. */
  setOf({ id, settings }: Topic): ConfigTexts {
    const stored = this.#stored(id)
    if (isSameCleaning(this.#cleaning(stored), settings)) return stored
    const set: Record<string, string> = { ...stored }
    for (const name of CLEANING_CONFIGS) delete set[name]
    for (const [name, text] of cleaningTexts(settings)) if (text !== this.defaults.get(name)) set[name] = text
    return set
  }

  /** Checked, and as they are kept. @throws OdradekError INVALID_ARGUMENT */
  checked(given: ConfigTexts): ConfigTexts {
    const texts: Record<string, string> = {}
    for (const [name, text] of Object.entries(given)) {
      const definition = TOPIC_CONFIGS.get(name)
      if (definition === undefined)
        throw invalid(`there is no topic config ${JSON.stringify(name.slice(0, 60))}`)
      texts[name] = checkValue(name, definition, text)
    }
    return texts
  }

  /** What `create` would refuse. @throws OdradekError as that */
  check(name: string, given: ConfigTexts): void {
    this.#parts.topics.assertFree(name)
    this.#parts.topics.settingsOf(name, this.#options(1, this.checked(given)))
  }

  /** @throws OdradekError TOPIC_EXISTS, INVALID_TOPIC, INVALID_ARGUMENT, UNSUPPORTED, or what the engine has */
  create(name: string, partitions: number, given: ConfigTexts = NONE): Promise<Topic> {
    const texts = this.checked(given)
    return this.#parts.topics.createNew(name, this.#options(partitions, texts), (topicId) => [
      [FACE_PREFIX + topicId, storedOf(texts)],
    ])
  }

  /**
   * `change`: from what is set to what shall be. Changes go one after the other.
   * @throws OdradekError UNKNOWN_TOPIC, INVALID_ARGUMENT, UNSUPPORTED, or what the engine has
   */
  alter(name: string, change: (set: ConfigTexts) => ConfigTexts, validateOnly = false): Promise<void> {
    return this.#parts.topics.reconfigure(name, (topic) => {
      const texts = this.checked(change(this.setOf(topic)))
      const besides: MetaChange[] = [[FACE_PREFIX + topic.id, storedOf(texts)]]
      return { cleaning: this.#cleaning(texts), besides: validateOnly ? null : besides }
    })
  }

  #options(partitions: number, texts: ConfigTexts): TopicOptions {
    return { partitions, ...this.#cleaning(texts) }
  }

  #stored(topicId: string): ConfigTexts {
    return (this.#parts.engine.meta.get(FACE_PREFIX + topicId) as ConfigTexts | undefined) ?? NONE
  }

  #text(texts: ConfigTexts, name: string): string {
    return texts[name] ?? (this.defaults.get(name) as string)
  }

  #cleaning(texts: ConfigTexts): Cleaning {
    return cleaningOf((name) => this.#text(texts, name))
  }

  #append(texts: ConfigTexts): AppendConfigs {
    const text = (name: string): string => this.#text(texts, name)
    return {
      maxMessageBytes: Number(text('max.message.bytes')),
      timestampType: text('message.timestamp.type') as AppendConfigs['timestampType'],
      timestampBeforeMaxMs: Number(text('message.timestamp.before.max.ms')),
      timestampAfterMaxMs: Number(text('message.timestamp.after.max.ms')),
      compressionType: text('compression.type'),
    }
  }
}

/** Null: nothing is. */
function storedOf(texts: ConfigTexts): ConfigTexts | null {
  return Object.keys(texts).length === 0 ? null : texts
}

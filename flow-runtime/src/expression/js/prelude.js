// Makes a context deterministic, and immutable from here on.
(function (known, host) {
  'use strict';
  const { freeze, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { ownKeys, apply } = Reflect;

  const names = new Set(known);
  for (const name of ownKeys(globalThis)) {
    if (typeof name === 'string' && !names.has(name)) delete globalThis[name];
  }
  const define = (target, name, value) =>
    defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });
  const absent = (name) => function () { throw new TypeError(`${name} is not available here`); };
  define(globalThis, 'eval', absent('eval'));
  define(globalThis, 'Proxy', absent('Proxy'));

  // Time is the event's, and every zone is UTC.
  const Real = Date;
  const parse = (text) => {
    text = String(text);
    if (/(Z|GMT|UTC|[+-]\d\d:?\d\d)\s*(\(.*\))?$/i.test(text)) return Real.parse(text);
    if (/^[+-]?\d{4,6}(-\d\d(-\d\d)?)?$/.test(text)) return Real.parse(text);
    const iso = Real.parse(text + 'Z');
    return iso === iso ? iso : Real.parse(text + ' GMT');
  };
  const Fixed = function Date(...args) {
    if (new.target === undefined) return new Fixed().toString();
    let millis;
    if (args.length === 0) {
      millis = host.time();
    } else if (args.length === 1) {
      let value = args[0];
      if (value instanceof Real) value = value.getTime();
      else if (typeof value === 'object' && value !== null) value = value.valueOf();
      millis = typeof value === 'string' ? parse(value) : value;
    } else {
      millis = Real.UTC(...args);
    }
    return Reflect.construct(Real, [millis], new.target);
  };
  defineProperty(Fixed, 'prototype', { value: Real.prototype, writable: false });
  define(Fixed, 'now', () => host.time());
  define(Fixed, 'parse', parse);
  define(Fixed, 'UTC', Real.UTC);
  define(Real.prototype, 'constructor', Fixed);
  for (const part of ['Date', 'Day', 'FullYear', 'Hours', 'Milliseconds', 'Minutes', 'Month', 'Seconds']) {
    define(Real.prototype, 'get' + part, Real.prototype['getUTC' + part]);
    if (part !== 'Day') define(Real.prototype, 'set' + part, Real.prototype['setUTC' + part]);
  }
  define(Real.prototype, 'getTimezoneOffset', () => 0);
  define(Real.prototype, 'getYear', function () { return this.getUTCFullYear() - 1900; });
  delete Real.prototype.setYear;
  const written = (format) => function () {
    const millis = this.getTime();
    return millis === millis ? host.strftime(format, millis) : 'Invalid Date';
  };
  define(Real.prototype, 'toString', written('%a %b %d %Y %H:%M:%S GMT+0000 (UTC)'));
  define(Real.prototype, 'toDateString', written('%a %b %d %Y'));
  define(Real.prototype, 'toTimeString', written('%H:%M:%S GMT+0000 (UTC)'));
  define(Real.prototype, 'toLocaleString', written('%Y-%m-%d %H:%M:%S'));
  define(Real.prototype, 'toLocaleDateString', written('%Y-%m-%d'));
  define(Real.prototype, 'toLocaleTimeString', written('%H:%M:%S'));
  define(globalThis, 'Date', Fixed);

  define(Math, 'random', () => host.random());
  define(globalThis, 'uuid', () => host.uuid());
  define(globalThis, 'variable', (name) => host.variable(String(name)));
  define(globalThis, 'now', () => {
    const millis = host.time();
    const plain = () => host.strftime('%Y-%m-%d %H:%M:%S', millis);
    return freeze({
      isoformat: () => host.strftime('%Y-%m-%dT%H:%M:%S', millis),
      strftime: (format) => host.strftime(String(format), millis),
      timestamp: () => millis / 1000,
      date: () => {
        const day = () => host.strftime('%Y-%m-%d', millis);
        return freeze({
          isoformat: day,
          strftime: (format) => host.strftime(String(format), millis),
          [Symbol.toPrimitive]: day,
          toString: day,
          toJSON: day,
        });
      },
      [Symbol.toPrimitive]: (hint) => (hint === 'number' ? millis : plain()),
      toString: plain,
      toJSON: plain,
    });
  });

  // Methods that work natively never look at the limits, so what they walk is counted before. An
  // array may also say it has four thousand million members without having any.
  const most = 4000000;
  const spend = (length) => { if (length > 1000) host.work(length); };
  const small = (value) => {
    if (Array.isArray(value)) {
      if (value.length > most) throw new RangeError('the array is too long');
      spend(value.length);
    }
    return value;
  };
  const array = (value) => {
    if (Array.isArray(value)) {
      small(value);
    } else if (typeof value === 'object' && value !== null) {
      throw new TypeError('methods of arrays need an array');
    }
  };
  const replace = (prototype, name, wrapped) => {
    defineProperty(wrapped, 'length', { value: prototype[name].length });
    define(prototype, name, wrapped);
  };
  // For these an absent argument is an undefined one.
  const short = ['map', 'filter', 'forEach', 'some', 'every', 'find', 'findIndex', 'includes', 'indexOf', 'slice', 'join'];
  const scalar = ['constructor', 'push', 'pop', 'at', 'keys', 'values', 'entries', Symbol.iterator];
  for (const name of ownKeys(Array.prototype)) {
    const method = Array.prototype[name];
    if (typeof method !== 'function' || scalar.includes(name)) continue;
    replace(Array.prototype, name, short.includes(name) ? {
      [name](a, b) { array(this); return method.call(this, a, b); },
    }[name] : {
      [name](...args) {
        array(this);
        if (name === 'concat') args.forEach(small);
        if (name === 'flat' || name === 'flatMap') this.forEach(small);
        return apply(method, this, args);
      },
    }[name]);
  }
  const searches = ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll'];
  const copies = ['toUpperCase', 'toLowerCase', 'normalize', 'repeat', 'padStart', 'padEnd', 'localeCompare'];
  for (const name of [...searches, ...copies]) {
    const method = String.prototype[name];
    const searching = searches.includes(name);
    replace(String.prototype, name, {
      [name](a, b) {
        const length = this === undefined || this === null ? 0 : this.length;
        if (length > 1000) {
          spend(length / 2);
          // A search compares the whole of what it looks for at every place.
          if (searching && typeof a === 'string' && a.length > 16) spend(length * a.length / 1024);
        }
        return method.call(this, a, b);
      },
    }[name]);
  }
  const { parse: parseJson, stringify } = JSON;
  define(JSON, 'parse', function parse(text, reviver) {
    if (typeof text === 'string') spend(text.length);
    return parseJson(text, reviver);
  });
  define(JSON, 'stringify', function (value, replacer, space) {
    const text = stringify(value, replacer, space);
    if (text !== undefined) spend(text.length);
    return text;
  });
  for (const name of ['Set', 'Map', 'WeakSet', 'WeakMap']) {
    const Native = globalThis[name];
    const Guarded = {
      [name]: function (items) {
        if (new.target === undefined) throw new TypeError(`${name} needs new`);
        return Reflect.construct(Native, items === undefined ? [] : [small(items)], new.target);
      },
    }[name];
    defineProperty(Guarded, 'prototype', { value: Native.prototype, writable: false });
    for (const key of ownKeys(Native)) {
      if (!['prototype', 'name', 'length'].includes(key)) {
        defineProperty(Guarded, key, getOwnPropertyDescriptor(Native, key));
      }
    }
    define(Native.prototype, 'constructor', Guarded);
    define(globalThis, name, Guarded);
  }

  // An inherited property that is frozen could not be assigned on an object of one's own.
  for (const prototype of [Object.prototype, Error.prototype]) {
    for (const key of ownKeys(prototype)) {
      const property = getOwnPropertyDescriptor(prototype, key);
      if (!('value' in property)) continue;
      const { value } = property;
      defineProperty(prototype, key, {
        get() { return value; },
        set(own) {
          if (this === prototype) throw new TypeError('this object cannot be changed');
          defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
        },
        enumerable: false,
        configurable: false,
      });
    }
  }

  const samples = [
    globalThis, [][Symbol.iterator](), ''[Symbol.iterator](), new Map().entries(), new Set().values(),
    'a'.matchAll(/a/g), function* () {}, async function () {}, async function* () {},
    (function* () {})(), (async function* () {})(), getPrototypeOf(Uint8Array),
  ];
  if (typeof Iterator === 'function') {
    samples.push(Iterator.from([]).map((x) => x), Iterator.from({ next() {} }));
  }
  const seen = new Set();
  while (samples.length > 0) {
    const here = samples.pop();
    if ((typeof here !== 'object' && typeof here !== 'function') || here === null || seen.has(here)) continue;
    seen.add(here);
    samples.push(getPrototypeOf(here));
    for (const key of ownKeys(here)) {
      const property = getOwnPropertyDescriptor(here, key);
      samples.push(property.value, property.get, property.set);
    }
  }
  for (const here of seen) {
    if (!ArrayBuffer.isView(here)) freeze(here);
  }
  return (text) => text.toWellFormed();
})
